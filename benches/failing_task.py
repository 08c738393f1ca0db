#!/usr/bin/env python3
"""Throughput of good tasks beside a task that always fails, and without it.

    benches/failing_task.py [--server PATH] [--tasks N] [--workers N] [--rounds N]

1,000 tasks (N) that are done at once by 16 workers, each a process that claims the next one with `wait`. In turn with and
without one more task, the first to be claimed, each attempt of which fails with the pause that `blackboard work` and the
clients ask for: 1 s, doubled by each attempt before it up to 5 min. R rounds (9), each in sessions of its own. Prints the
medians of good tasks per second and of the rounds' ratios, with their range, and how often the bad task was tried. Reports
figures without judging them.
"""

import argparse
import multiprocessing
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from board_server import Client, Server, expect

PAUSE_S, PAUSE_S_MAX = 1, 300
# A worker that got no task within this time leaves.
WAIT = "500ms"


def pause(past_attempts):
    """The clients' rule: what was given back is no failure."""
    failures = sum(past["outcome"] != "released" for past in past_attempts)
    return min(PAUSE_S * 2**failures, PAUSE_S_MAX)


def work(address, worker, sessions):
    """Works on the tasks of each session whose name it is sent."""
    client = Client(address, 60)
    sessions.send(None)
    while place := sessions.recv():
        done, failed, last = 0, 0, None
        while True:
            claimed = expect(client.ask("POST", f"{place}/claim?wait={WAIT}", {"ttl": "60s"}, X_Agent_ID=worker), 200, 204)
            if claimed.status == 204:
                break
            task = claimed.json()
            end = {"fence": task["claim"]["fence"]}
            if task["item"]["fails"]:
                end |= {"reason": "always", "retry_in": f"{pause(task.get('past_attempts', []))}s"}
                expect(client.ask("PUT", f"{place}/{task['seq']}/failed", end, X_Agent_ID=worker), 200)
                failed += 1
            else:
                expect(client.ask("PUT", f"{place}/{task['seq']}/done", end, X_Agent_ID=worker), 200)
                done, last = done + 1, time.monotonic()
        sessions.send((done, failed, last))


def drained(client, workers, session, tasks, has_bad):
    """Good tasks a second from the first claim to the last end, and the attempts of the bad one."""
    place = f"/v1/sessions/{session}/requests"
    items = [{"fails": True}] * has_bad + [{"fails": False, "n": n} for n in range(tasks)]
    expect(client.ask("POST", place, items), 201)
    begun = time.monotonic()
    for worker in workers:
        worker.send(place)
    done, failed, ends = zip(*(worker.recv() for worker in workers))
    if sum(done) != tasks:
        raise RuntimeError(f"{sum(done)} of {tasks} tasks are done")
    return tasks / (max(filter(None, ends)) - begun), sum(failed)


def start(address, worker):
    ours, its = multiprocessing.Pipe()
    multiprocessing.Process(target=work, args=(address, worker, its), daemon=True).start()
    ours.recv()
    return ours


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--server", default="target/dist/blackboard")
    parser.add_argument("--tasks", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=9)
    wanted = parser.parse_args()
    runs = {True: [], False: []}
    with Server(wanted.server) as server:
        client = Client(server.address, 120)
        workers = [start(server.address, f"worker-{n}") for n in range(wanted.workers)]
        drained(client, workers, "warm", wanted.tasks, True)
        for turn in range(wanted.rounds):
            for has_bad in (True, False) if turn % 2 else (False, True):
                session = f"{'beside' if has_bad else 'alone'}-{turn}"
                runs[has_bad].append(drained(client, workers, session, wanted.tasks, has_bad))
        for worker in workers:
            worker.send(None)
    (beside, tried), (alone, _) = (zip(*runs[has_bad]) for has_bad in (True, False))
    ratios = sorted(one / other for one, other in zip(beside, alone))
    print(f"good tasks a second: {statistics.median(beside):.0f} beside a bad one, {statistics.median(alone):.0f} alone")
    print(f"ratio {statistics.median(ratios):.2f}, in rounds {ratios[0]:.2f} to {ratios[-1]:.2f}")
    print(f"attempts of the bad one: {statistics.median(tried):.0f}")


if __name__ == "__main__":
    main()
