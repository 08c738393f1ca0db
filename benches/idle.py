#!/usr/bin/env python3
"""Processor time of an idle server with many sessions, as a share of one core.

    benches/idle.py [--server PATH] [--sessions N] [--seconds S]

Starts the server in a new directory, on loopback, and makes N sessions (100,000), each with a label, a question, a
retention by age and a time to live. Waits until the store has compacted them, then measures the processor time of the
process over a minute without connections. The aim is below 0.5 %.
"""

import argparse
import os
import pathlib
import re
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from board_server import Server

WRITERS = 8
# The settings with which most can come due: history to be cut, a deadline, and a session's end.
SESSION = {"settings": {"history": "1h", "ttl": "7d"}, "labels": {"team": "blue"}}
QUIET_S_MAX = 600


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def by_thread(pid):
    """CPU time by the name of the thread."""
    times = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as stat:
                name, rest = re.match(r"\d+ \((.*)\) (.*)", stat.read()).groups()
        except OSError:
            continue
        fields = rest.split()
        times[name] = times.get(name, 0) + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return times


def make(server, first, count):
    client = server.client()
    for n in range(first, first + count):
        for method, path, body in (
            ("PUT", f"/v1/sessions/idle-{n}", SESSION),
            ("POST", f"/v1/sessions/idle-{n}/questions?expires=6d", {"question": "Which one?"}),
        ):
            answer = client.ask(method, path, body)
            if answer.status not in (200, 201):
                sys.exit(f"{method} {path}: {answer.status} {answer.body!r}")


def uncompacted(server):
    metrics = server.client().ask("GET", "/metrics").body.decode()
    found = re.search(r"^blackboard_\w*(?:unsettled|uncompacted)\w* (\d+)", metrics, re.M)
    return int(found[1]) if found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="target/dist/blackboard")
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    with Server(arguments.server) as server:
        begun, each = time.monotonic(), -(-arguments.sessions // WRITERS)
        threads = [threading.Thread(target=make, args=(server, n * each, each)) for n in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"{each * WRITERS} sessions made in {time.monotonic() - begun:.0f} s", flush=True)
        begun = time.monotonic()
        while uncompacted(server) > 0 and time.monotonic() - begun < QUIET_S_MAX:
            time.sleep(1)
        # What is done after the last piece: shrinking, snapshots, the last checkpoint.
        time.sleep(15)
        before, threads_before = cpu_s(server.process.pid), by_thread(server.process.pid)
        time.sleep(arguments.seconds)
        used, threads_after = cpu_s(server.process.pid) - before, by_thread(server.process.pid)
        print(f"idle: {used / arguments.seconds * 100:.2f} % of a core over {arguments.seconds:.0f} s (aim: below 0.5 %)")
        for name, after in sorted(threads_after.items(), key=lambda item: -item[1]):
            part = (after - threads_before.get(name, 0)) / arguments.seconds * 100
            if part >= 0.01:
                print(f"  {name:24} {part:.2f} %")


if __name__ == "__main__":
    main()
