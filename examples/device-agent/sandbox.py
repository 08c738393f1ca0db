#!/usr/bin/env python3
"""Tool server for the examples: files, charts and programs of one directory, over MCP's standard streams.

    sandbox.py DIRECTORY [PROGRAM...]

Programs run without a shell, only those named, joined by | if need be; no argument leads out of the directory.
"""

import json
import os
import pathlib
import shlex
import subprocess
import sys

OUTPUT_MAX = 64 << 10

root = pathlib.Path(sys.argv[1]).resolve()
programs = sys.argv[2:]


def inside(name):
    """A path in the directory."""
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise PermissionError(f"'{name}' is not in the directory")
    return path


def execute_command(command, timeout=30):
    words = shlex.split(command)
    output = b""
    while words:
        end = words.index("|") if "|" in words else len(words)
        (program, *arguments), words = words[:end], words[end + 1 :]
        if program not in programs:
            raise PermissionError(f"program '{program}' is not allowed")
        for argument in arguments:
            if argument.startswith("-") and "/" in argument:
                raise PermissionError(f"option '{argument}' has a path in it")
            inside(argument)
        environment = {"PATH": os.defpath}
        ran = subprocess.run(
            [program, *arguments], input=output, capture_output=True, cwd=root, env=environment, timeout=timeout
        )
        if ran.returncode != 0:
            raise OSError(f"exit code {ran.returncode}: {ran.stderr.decode(errors='replace').strip()}")
        output = ran.stdout[:OUTPUT_MAX]
    return {"exit_code": 0, "stdout": output.decode(errors="replace")}


def list_files():
    return {"files": sorted(path.name for path in root.iterdir())}


def write_file(path, text, append=False):
    with inside(path).open("a" if append else "w") as file:
        file.write(text)
    return {"written": len(text)}


def delete_file(path):
    inside(path).unlink()
    return {"deleted": path}


def draw_chart(path, values):
    bars = (f"<rect x='{10 * n}' width='8' height='{float(value):g}'/>" for n, value in enumerate(values))
    return write_file(path, f"<svg xmlns='http://www.w3.org/2000/svg'>{''.join(bars)}</svg>\n")


TOOLS = {
    execute_command: {"command": "string", "timeout": "integer"},
    list_files: {},
    write_file: {"path": "string", "text": "string", "append": "boolean"},
    delete_file: {"path": "string"},
    draw_chart: {"path": "string", "values": "array"},
}
OPTIONAL = {"timeout", "append"}


def schema(types):
    properties = {name: {"type": kind} for name, kind in types.items()}
    required = [name for name in types if name not in OPTIONAL]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def call(name, arguments):
    tool = {tool.__name__: tool for tool in TOOLS}[name]
    try:
        made = "path" in arguments and not inside(arguments["path"]).exists()
        result = tool(**arguments)
    except (OSError, subprocess.SubprocessError, TypeError, ValueError) as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    undo = {"tool_name": "delete_file", "parameters": {"path": arguments.get("path")}}
    content = [{"type": "text", "text": json.dumps(result)}]
    return {"content": content, "structuredContent": result, "_meta": {"undo": undo} if made else {}}


def answer(method, params):
    if method == "initialize":
        server = {"name": "sandbox", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [{"name": tool.__name__, "inputSchema": schema(types)} for tool, types in TOOLS.items()]}
    return call(params["name"], params["arguments"]) if method == "tools/call" else {}


try:
    for line in sys.stdin:
        message = json.loads(line) if line.endswith("\n") else {}
        if "id" in message:
            result = answer(message["method"], message.get("params", {}))
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
except BrokenPipeError:
    # The client was killed, so nothing reads the answer.
    os._exit(1)
