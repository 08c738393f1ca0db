#!/usr/bin/env bash
# mcp 2.3.0 and 1.30.0 (Python): one call whose connection ends, ends the client.
#
# Over streamable HTTP each call is a request of its own. If the server closes its connection without an answer, or
# cannot be reached for a moment, the error is raised in the transport's group of tasks, not in `call_tool`. So the whole
# `async with` of the client is cancelled, other calls with it, and no `except` around the call sees why.
#
# Seen: a call that succeeds, one whose connection the server closes, and one more.
#   ok: fine
#   the block ended by ExceptionGroup
# Expected: an error of the second call, and "fine" from the third.
#
# OpenAI Agents SDK 0.24.0, Agent Framework 1.23.0, Pydantic AI 2.66.0 and agno 3.1.10 keep one client for a run, so that
# each later call of the run fails, or the run ends; LangChain's adapters open a client for each call.
# Needs python3 with venv, and PyPI.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
for version in 2.3.0 1.30.0; do
  python3 -m venv "$at/$version"
  "$at/$version/bin/pip" install --quiet --disable-pip-version-check "mcp==$version"
  "$at/$version/bin/python" - <<'PYTHON' >"$at/seen" 2>"$at/errors"
import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from mcp import ClientSession
from mcp.client import streamable_http

connected = getattr(streamable_http, "streamable_http_client", None) or streamable_http.streamablehttp_client


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, params = message["method"], message.get("params", {})
        if params.get("name") == "cut":
            self.close_connection = True
            return
        result = {"content": [{"type": "text", "text": "fine"}]}
        if method == "initialize":
            info = {"name": "test", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        if method == "tools/list":
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("cut", "ok")]}
        answer = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()
        data = answer if "id" in message else b""
        self.send_response(200 if data else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send_error(405)

    def log_message(self, *_):
        pass


async def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        async with connected(f"http://127.0.0.1:{server.server_port}/mcp") as streams:
            async with ClientSession(*streams[:2]) as session:
                await session.initialize()
                for name in ("ok", "cut", "ok"):
                    try:
                        print(f"{name}:", (await session.call_tool(name, {})).content[0].text)
                    except Exception as error:
                        print(f"{name}: {type(error).__name__}")
    except BaseException as error:
        print("the block ended by", type(error).__name__)


asyncio.run(asyncio.wait_for(main(), 20))
PYTHON
  echo "mcp $version"
  cat "$at/seen"
  diff "$at/seen" - <<'SEEN'
ok: fine
the block ended by ExceptionGroup
SEEN
done
