#!/usr/bin/env python3
"""Cost of a prompt at every step of an agent, as its board grows.

    benches/prompt.py [--server PATH] [--rounds N]

Starts the server in a new directory, on loopback. For boards of 20 and of 2,104 trajectories it appends one and asks
for the prompt, N times, and prints the median time of each query and the ratio of the two boards. The cost should
depend on the size of the answer, not of the board: the aim is a ratio of at most 2 where both show the same.
"""

import argparse
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from board_server import Server

BOARDS = (20, 2104)
QUERIES = {
    "8,000 tokens": "prompt?max_tokens=8000",
    "8,000 tokens, Markdown": "prompt?max_tokens=8000&format=markdown",
    "8,000 tokens, Anthropic": "prompt?max_tokens=8000&format=anthropic",
    "the last 20, Markdown": "prompt?latest=20&format=markdown",
    "the last 20": "prompt?latest=20",
    "no such agent": "trajectories?agent=Nobody",
    "the last of no agent": "trajectories?agent=Nobody&latest=5",
}


def step(n):
    return {"step": n, "agent": "AppAgent", "status": "OK", "thought": f"step {n} " + "looked at the page; " * 80}


def ask(client, method, path, body=None):
    answer = client.ask(method, path, body)
    if answer.status not in (200, 201):
        sys.exit(f"{method} {path}: {answer.status} {answer.body!r}")
    return answer


def medians(client, session, count, rounds):
    log = f"/v1/sessions/{session}/trajectories"
    for first in range(0, count, 500):
        ask(client, "POST", log, [step(n) for n in range(first, min(first + 500, count))])
    found = {}
    for name, query in QUERIES.items():
        path, times = f"/v1/sessions/{session}/{query}", []
        ask(client, "GET", path)
        for n in range(rounds):
            ask(client, "POST", log, step(count + n))
            begun = time.perf_counter()
            answer = ask(client, "GET", path)
            times.append(time.perf_counter() - begun)
        found[name] = (statistics.median(times) * 1000, len(answer.body))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="target/dist/blackboard")
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    with Server(arguments.server) as server:
        client = server.client()
        small, large = (medians(client, f"board-{count}", count, arguments.rounds) for count in BOARDS)
    for name in QUERIES:
        (few_ms, few), (many_ms, many) = small[name], large[name]
        print(f"{name}: {few_ms:.2f} ms and {few} B, {many_ms:.2f} ms and {many} B, FIGURE ratio {many_ms / few_ms:.1f}")


if __name__ == "__main__":
    main()
