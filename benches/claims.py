#!/usr/bin/env python3
"""Server's processor time of a claim, among 100 pending requests and among many.

    benches/claims.py [--server PATH] [--pending N] [--rounds N]

Three kinds of claims: of the next request; under a cap of one for each of 100 devices, of which 50 are taken; and by a
`match` that one of 1,000 requests has, the first of them in the last place of 100 and of 1,000. In turn, R claims (300)
of each kind and size in one run, each released before the next, which is not counted. Prints the medians in microseconds
and their ratios. Reports figures without judging them.
"""

import argparse
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from board_server import Client, Server, expect

FEW = 100
DEVICES = 100
TAKEN = 50
RARE = 1_000


def used(server):
    """Processor time of all threads of the server, in nanoseconds."""
    tasks = pathlib.Path(f"/proc/{server.process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


class Case:
    """Claims of one kind among so many pending requests."""

    def __init__(self, client, kind, pending):
        self.client, self.kind, self.pending = client, kind, pending
        self.place = f"/v1/sessions/{kind}-{pending}/requests"
        self.times = []
        if kind == "capped":
            settings = {"settings": {"running_max": [{"by": "device", "max": 1}]}}
            expect(client.ask("PUT", f"/v1/sessions/{kind}-{pending}", settings), 201)
        rare = min(RARE, pending)
        items = [{"device": n % DEVICES, "n": n, "rare": n % rare == rare - 1} for n in range(pending)]
        for start in range(0, pending, 10_000):
            expect(client.ask("POST", self.place, items[start : start + 10_000]), 201)
        if kind == "capped":
            for device in range(TAKEN):
                wanted = {"ttl": "1h", "match": {"device": device}}
                expect(client.ask("POST", f"{self.place}/claim", wanted, X_Agent_ID="taker"), 200)

    def wait_for_index(self):
        """Until the text of the requests is indexed: that takes processor time too."""
        session = f"{self.kind}-{self.pending}"
        revision = expect(self.client.ask("GET", f"/v1/sessions/{session}"), 200).json()["revision"]
        search = f"/v1/search?q=device&limit=1&session={session}&min_revision={revision}"
        while expect(self.client.ask("GET", search), 200, 503).status == 503:
            pass

    def claim(self, server):
        wanted = {"ttl": "60s", "match": {"rare": True}} if self.kind == "matched" else {"ttl": "60s"}
        before = used(server)
        claimed = expect(self.client.ask("POST", f"{self.place}/claim", wanted, X_Agent_ID="worker"), 200)
        self.times.append((used(server) - before) / 1000)
        address = f"{self.place}/{claimed.json()['seq']}/claim"
        expect(self.client.ask("DELETE", address, X_Agent_ID="worker"), 200)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--server", default="target/dist/blackboard")
    parser.add_argument("--pending", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=300)
    wanted = parser.parse_args()
    with Server(wanted.server) as server:
        client = Client(server.address, 120)
        kinds = ("next", "capped", "matched")
        cases = [Case(client, kind, pending) for kind in kinds for pending in (FEW, wanted.pending)]
        for case in cases:
            case.wait_for_index()
        for _ in range(wanted.rounds):
            for case in cases:
                case.claim(server)
        for few, many in zip(cases[::2], cases[1::2]):
            small, large = (statistics.median(case.times) for case in (few, many))
            print(f"{few.kind}: {small:.0f} us among {FEW}, {large:.0f} us among {wanted.pending}, ratio {large / small:.2f}")


if __name__ == "__main__":
    main()
