"""Process of the kill tests: writes with the synchronous client, or works on requests until there are none."""

from __future__ import annotations

import sys

from agent_blackboard import Client


def write(client: Client, session: str, name: str, count: int) -> None:
    """Append `count` items, one after another."""
    log = client.session(session).trajectories
    for number in range(count):
        log.append({"step": number, "writer": name})


def work(client: Client, session: str, name: str) -> None:
    """Take requests until all are done, those of a killed process too; tell each one taken on standard output."""
    board = client.session(session)
    while True:
        with board.requests.next(ttl=6.0, wait=1.0) as task:
            if task is None:
                if all(entry.done for entry in board.requests.entries()):
                    return
                continue
            print(task.seq, flush=True)
            with task.finishing() as t:
                t.append("trajectories", {"did": task.item["n"], "by": name})


if __name__ == "__main__":
    action, url, session, name, *rest = sys.argv[1:]
    with Client(url, agent=name, timeout=120) as client:
        if action == "write":
            write(client, session, name, int(rest[0]))
        else:
            work(client, session, name)
