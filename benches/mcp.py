#!/usr/bin/env python3
"""Processor time of a tool call beside the same request over HTTP.

    benches/mcp.py [--server PATH] [--calls N] [--rounds N]

Starts the server in a directory of its own, on loopback. Calls each tool and its HTTP twin N times over one connection,
by turns in several rounds, and prints the server's processor time for a call of each (from /proc/PID/task/*/schedstat) and
their ratio: the median of the rounds. The aim is a ratio of at most 1.5.
"""

import argparse
import http.client
import json
import pathlib
import socket
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from board_server import Server

SESSION = "bench"
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream", "x-agent-id": "A"}
STEP = {"step": 1, "agent": "A", "status": "CONTINUE", "thought": "looked at the page; " * 20}


def twins():
    """Each tool with its arguments, and the HTTP request that does the same."""
    board = f"/v1/sessions/{SESSION}"
    return {
        "get_state": ({"path": "tasks/t1"}, ("GET", f"{board}/state/tasks/t1", None)),
        "set_state": ({"path": "tasks/t2", "value": {"n": 1}}, ("PUT", f"{board}/state/tasks/t2", {"n": 1})),
        "add_to_state": ({"path": "n", "add": 1}, ("PATCH", f"{board}/state/n", {"add": 1})),
        "append_items": (
            {"log": "trajectories", "items": [STEP]},
            ("POST", f"{board}/trajectories", [STEP]),
        ),
        "read_log": ({"log": "requests", "latest": 20}, ("GET", f"{board}/requests?latest=20", None)),
        "recall": ({"latest": 10}, ("GET", f"{board}/agents/A/memory?latest=10", None)),
        "render_prompt": (
            {"include": ["requests", "state"], "max_tokens": 4000},
            ("GET", f"{board}/prompt?format=markdown&include=requests,state&max_tokens=4000", None),
        ),
    }


class Twin:
    """One of a pair, over a connection of its own."""

    def __init__(self, address, method, path, body):
        self.connection = http.client.HTTPConnection(*address)
        self.connection.connect()
        self.request = (method, path, body if body is None else json.dumps(body), JSON)

    def cork(self, on):
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, on)

    def call(self):
        # Head and body go in one segment, as Node.js and hyper send them.
        self.cork(True)
        self.connection.request(*self.request)
        self.cork(False)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300 or b'"isError":true' in text or b'"error":{' in text:
            sys.exit(f"{self.request}: {answer.status} {text[:500]!r}")
        return text


def processor_s(pid):
    """Time on processors of the server's threads so far, in nanoseconds' steps."""
    threads = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def cost_us(server, twin, calls):
    begun = processor_s(server.process.pid)
    for _ in range(calls):
        twin.call()
    return (processor_s(server.process.pid) - begun) / calls * 1e6


def fill(client):
    def write(method, path, body):
        answer = client.ask(method, f"/v1/sessions/{SESSION}/{path}", body)
        if answer.status >= 300:
            sys.exit(f"{path}: {answer.status} {answer.body!r}")

    write("POST", "requests", [{"request": f"sum up page {n}", "n": n} for n in range(50)])
    write("POST", "agents/A/memory", [STEP] * 20)
    write("PUT", "state", {"tasks": {"t1": {"status": "ready", "n": 1}}, "n": 0})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="target/dist/blackboard")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(f"{'tool':16} {'HTTP':>9} {'MCP':>9}  ratio")
    with Server(options.server) as server:
        fill(server.client())
        for tool, (arguments, (method, path, body)) in twins().items():
            params = {"name": tool, "arguments": arguments}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            plain = Twin(server.address, method, path, body)
            called = Twin(server.address, "POST", f"/mcp?session={SESSION}&agent=A", message)
            pairs = []
            for _ in range(options.rounds):
                pairs.append((cost_us(server, plain, options.calls), cost_us(server, called, options.calls)))
            ratio = statistics.median(mcp / http_us for http_us, mcp in pairs)
            http_us, mcp = (statistics.median(side) for side in zip(*pairs))
            print(f"{tool:16} {http_us:6.0f} µs {mcp:6.0f} µs  {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
