#!/usr/bin/env python3
"""Two builds of the server side by side: requests a second, and processor time of a request.

    benches/before_after.py BEFORE AFTER [--rounds N] [--seconds S] [--connections C]

Starts both in directories of their own, on loopback, fills both alike, and loads them by turns with wrk. Every round
measures both, in turned order, so that what else the machine does meets both. Prints medians, and the median of the
rounds' ratios: of requests a second (AFTER / BEFORE), and of processor time a request (BEFORE / AFTER). Above 1 the
second build is the faster one.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from board_server import Server

from mcp import JSON, SESSION, STEP, fill, processor_s

STEPS = 1000


def requests():
    """What is measured: method, path, and body of each."""
    board = f"/v1/sessions/{SESSION}"
    call = {"name": "get_state", "arguments": {"path": "tasks/t1"}}
    return {
        "durable POST": ("POST", f"{board}/questions", [{"q": "What is the total?", "a": "48,211.50"}]),
        "page": ("GET", f"{board}/trajectories?limit=100", None),
        "prompt": ("GET", f"{board}/prompt?format=parts", None),
        "MCP get_state": (
            "POST",
            f"/mcp?session={SESSION}&agent=A",
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        ),
    }


def load(server, request, options, home):
    """One turn: requests a second, and microseconds of the server's processor time for each."""
    method, path, body = request
    file = "-"
    if body is not None:
        file = home / "body"
        file.write_text(json.dumps(body))
    host, port = server.address
    command = ["wrk", "-t1", f"-c{options.connections}", f"-d{options.seconds}s", "-s", HERE / "http" / "load.lua"]
    command += [f"http://{host}:{port}{path}", "--", method, file]
    command += [f"{name}: {value}" for name, value in JSON.items()]
    begun = processor_s(server.process.pid)
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    spent = processor_s(server.process.pid) - begun
    done, duration_us, _, _, broken, rejected = map(int, re.search(r"RESULT (.*)", text)[1].split())
    if broken or rejected:
        sys.exit(f"{method} {path}: {broken} broken, {rejected} rejected of {done}")
    return done / duration_us * 1e6, spent / done * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, Server(options.before) as before, Server(options.after) as after:
        for server in (before, after):
            client = server.client()
            fill(client)
            answer = client.ask("POST", f"/v1/sessions/{SESSION}/trajectories", [STEP] * STEPS)
            if answer.status >= 300:
                sys.exit(f"{answer.status} {answer.body!r}")
        print(f"{'':14} {'before':>9} {'after':>9}  ratio {'before':>9} {'after':>9}  ratio", flush=True)
        for name, request in requests().items():
            rounds = []
            for n in range(options.rounds):
                order = (before, after) if n % 2 == 0 else (after, before)
                turns = {server: load(server, request, options, pathlib.Path(home)) for server in order}
                rounds.append((turns[before], turns[after]))
            per_s = [statistics.median(turn[side][0] for turn in rounds) for side in (0, 1)]
            cpu_us = [statistics.median(turn[side][1] for turn in rounds) for side in (0, 1)]
            faster = statistics.median(new[0] / old[0] for old, new in rounds)
            cheaper = statistics.median(old[1] / new[1] for old, new in rounds)
            print(
                f"{name:14} {per_s[0]:7.0f}/s {per_s[1]:7.0f}/s  {faster:.2f} "
                f"{cpu_us[0]:6.0f} µs {cpu_us[1]:6.0f} µs  {cheaper:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
