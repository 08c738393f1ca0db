#!/usr/bin/env python3
"""Rate of workers that drain tasks with dependencies, and tasks without.

    benches/tasks.py [--server PATH] [--workers N] [--rounds N]

10,000 tasks in 100 layers of 100, each after two of the layer before, and 10,000 independent ones: in turn, each
drained by N workers (16) that claim the next one with `wait` and set it done, R rounds (3). Prints the medians of tasks
per second and of the server's processor time per task, which excludes the workers' own, with their ratios. Reports
figures without judging them.
"""

import argparse
import concurrent.futures
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from board_server import Client, Server, expect

LAYERS, WIDTH = 100, 100


def append(client, session, layer, waits):
    """Appends a layer of tasks; `waits` if each waits for two tasks of the layer before."""
    first = layer * WIDTH + 1
    if not waits or layer == 0:
        items = [{"task": first + n} for n in range(WIDTH)]
        return client.ask("POST", f"/v1/sessions/{session}/requests", items)
    before = first - WIDTH
    for n in range(WIDTH):
        after = f"{before + n},{before + (n + 1) % WIDTH}"
        answer = client.ask("POST", f"/v1/sessions/{session}/requests?after={after}", {"task": first + n})
    return answer


def work(address, session, worker, left):
    client, place = Client(address, 60), f"/v1/sessions/{session}/requests"
    while left:
        claimed = expect(client.ask("POST", f"{place}/claim?wait=1s", {"ttl": "60s"}, X_Agent_ID=worker), 200, 204)
        if claimed.status == 200:
            request = claimed.json()
            end = {"fence": request["claim"]["fence"]}
            expect(client.ask("PUT", f"{place}/{request['seq']}/done", end, X_Agent_ID=worker), 200)
            left.pop()


def used(server):
    """Processor time of the server, in seconds."""
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def drained(server, session, waits, workers):
    client = Client(server.address, 60)
    for layer in range(LAYERS):
        expect(append(client, session, layer, waits), 201)
    left = [None] * (LAYERS * WIDTH)
    begun, before = time.monotonic(), used(server)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        all = [pool.submit(work, server.address, session, f"worker-{n}", left) for n in range(workers)]
        while left and not any(one.done() for one in all):
            time.sleep(0.01)
        took, busy = time.monotonic() - begun, used(server) - before
        for one in all:
            one.result()
    return LAYERS * WIDTH / took, busy / (LAYERS * WIDTH) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--server", default="target/dist/blackboard")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    runs = {True: [], False: []}
    with Server(wanted.server) as server:
        for round in range(wanted.rounds):
            for waits in (True, False) if round % 2 else (False, True):
                runs[waits].append(drained(server, f"{'graph' if waits else 'free'}-{round}", waits, wanted.workers))
    graph, free = ([statistics.median(figure) for figure in zip(*runs[waits])] for waits in (True, False))
    print(f"tasks a second: graph of depth {LAYERS} {graph[0]:.0f}, independent {free[0]:.0f}, ratio {graph[0] / free[0]:.2f}")
    print(f"server's time a task: {graph[1]:.0f} us and {free[1]:.0f} us, ratio {graph[1] / free[1]:.2f}")


if __name__ == "__main__":
    main()
