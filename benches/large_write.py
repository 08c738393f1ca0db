#!/usr/bin/env python3
"""Latency of appends beside large writes to another session.

    benches/large_write.py [--server target/dist/blackboard] [--rounds 5] [--seconds 5]

Starts the server in a directory of its own, on loopback. Each round loads one session with appends of 16 connections, first
alone, then while another client with an address of its own PUTs boards with a state of 14 MB (620,000 members, others each time) into
another session, one a second. Prints p50 and p99 of the appends, and the ratios' medians: the aim is a p99 of at most 3 times. It needs wrk.
"""

import argparse
import http.client
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE / "http"))
import contenders  # noqa: E402
import load  # noqa: E402

CONNECTIONS = 16
MEMBERS = 620_000
PAUSE_S = 1
# Clients are told apart by their addresses.
WRITERS_ADDRESS = "127.0.0.2"


def state(turn):
    """About 14 MB."""
    return ('{"state":{' + ",".join(f'"member{n}":{n + turn}' for n in range(MEMBERS)) + "}}").encode()


def loaded(running, request, seconds):
    """p50 and p99 in milliseconds, and the appends a second."""
    requests, took, p50, p99, broken = load.wrk(running, request, CONNECTIONS, seconds)
    if broken:
        raise load.Failed(f"{broken} appends broke off")
    return p50, p99, requests / took


def put(running, states, end, took):
    for turn in range(1_000_000):
        if end.is_set():
            return
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60, source_address=(WRITERS_ADDRESS, 0))
        begun = time.monotonic()
        connection.request("PUT", "/v1/sessions/large/blackboard", states[turn % 2], {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status not in (200, 201):
            raise RuntimeError(f"the large write: {answer.status}")
        took.append(time.monotonic() - begun)
        end.wait(PAUSE_S)


def beside(running, request, seconds, states):
    end, took = threading.Event(), []
    writer = threading.Thread(target=put, args=(running, states, end, took))
    writer.start()
    try:
        return loaded(running, request, seconds), took
    finally:
        end.set()
        writer.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=contenders.BINARY)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    given = parser.parse_args()
    states = [state(turn) for turn in range(2)]
    ratios = []
    contenders.BINARY = given.server.resolve()
    with tempfile.TemporaryDirectory() as home, contenders.blackboard(Path(home)) as running:
        request = load.append(running, Path(home))
        loaded(running, request, 1)
        for _ in range(given.rounds):
            alone = loaded(running, request, given.seconds)
            other, took = beside(running, request, given.seconds, states)
            ratios.append((other[0] / alone[0], other[1] / alone[1]))
            print(
                f"alone p50 {alone[0]:6.2f} p99 {alone[1]:7.2f} ms {alone[2]:7,.0f}/s;"
                f"  beside p50 {other[0]:6.2f} p99 {other[1]:7.2f} ms {other[2]:7,.0f}/s;"
                f"  {len(took)} states, {statistics.median(took):.2f} s each"
            )
    p50, p99 = (statistics.median(ratio) for ratio in zip(*ratios))
    print(f"ratios: p50 {p50:.2f}, p99 {p99:.2f}")


main()
