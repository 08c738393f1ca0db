"""Failing calls: the n-th sync, write, rename, unlink, open, link or mmap of a fixed run, for every n.

Whatever the answer, the next start shows each session at an acknowledged revision or a later one, and `check` finds the
store sound. A server may refuse to start during the fault, but not after it.
"""

import errno
import http.client
import os
from collections import Counter

import load

SESSIONS = 2
STEPS = 40
TRIALS_IN_SHORT = 12
# The calls of a kind are so many pieces.
SHARES = 8

SHORT_WRITE = 0
FAULTS = [
    (call, number)
    for call, numbers in {
        "fsync": [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINTR],
        "write": [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINTR, SHORT_WRITE],
        "rename": [errno.EIO, errno.ENOSPC],
        "unlink": [errno.EIO],
        "open": [errno.EIO, errno.EMFILE, errno.ENOSPC],
        "link": [errno.EIO, errno.ENOSPC],
        "mmap": [errno.EIO, errno.ENOMEM],
    }.items()
    for number in numbers
]


class Preloaded:
    """The recorder as an injector."""

    def __init__(self, place, call, nth, number):
        self.told = place.path("calls")
        self.environment = {
            "LD_PRELOAD": place.library,
            "RECORD_ROOT": place.home,
            "FAIL_CALL": call,
            "FAIL_NTH": str(nth),
            "FAIL_ERRNO": str(number),
            "FAIL_LOG": self.told,
        }

    def lines(self):
        with open(self.told, encoding="ascii") as told:
            return told.read().splitlines()

    def counts(self):
        """How many calls of each kind there were."""
        return {name: int(count) for name, count in (one.split("=") for one in self.lines()[-1].split())}


class FailingCalls:
    """One fixed run for each call that may fail."""

    name = "failing-calls"
    short, long = 1, SHARES * len(FAULTS)

    def __init__(self, place):
        self.place, self.trials = place, 0

    def piece(self, number):
        """An eighth of the calls of a kind with one error; in the short form some of all."""
        chance = self.place.chance(number)
        counts = self.trial("fsync", 0, 0)[1]
        if self.place.is_long:
            (call, error), share = FAULTS[number // SHARES], number % SHARES
            # Threads make the number differ a little.
            trials = [(call, nth, error) for nth in range(1 + share, counts[call] + SHARES, SHARES)]
        else:
            faults = [chance.choice(FAULTS) for _ in range(TRIALS_IN_SHORT)]
            trials = [(call, chance.randrange(1, counts[call] + 1), error) for call, error in faults]
        total = Counter()
        for trial in trials:
            total += self.trial(*trial)[0]
        return total

    def trial(self, call, nth, error):
        """The run with that call failing; what was counted, and the calls."""
        self.trials += 1
        data = self.place.path(f"data-{self.trials}")
        preloaded = Preloaded(self.place, call, nth, error)
        sessions = [load.Session(f"s{n}", f"fixed/{n}") for n in range(SESSIONS)]
        counts, name = Counter(runs=1), f"{call} {nth} with {errno.errorcode.get(error, 'a short write')}"
        try:
            try:
                with self.place.server(data, preloaded=preloaded) as server:
                    self.work(server, sessions, data + ".backup")
            except RuntimeError:
                counts["starts refused"] += 1
            counts["failed"] += any(line.startswith("failed") for line in preloaded.lines())
            counts["acknowledged"] += sum(session.revision for session in sessions)
            with self.place.server(data) as server:
                for session in sessions:
                    load.judge(server.client(), session, 0)
            self.place.sound(data)
            return counts, preloaded.counts() if nth == 0 else {}
        except (load.Broken, RuntimeError) as broken:
            raise load.Broken(f"{name}: {broken}") from broken
        finally:
            os.remove(preloaded.told)

    def work(self, server, sessions, copy):
        """The fixed run: writes of all kinds, a fork, a purge, a backup, a deletion."""
        writers = [load.Writer(session, lambda: 0, unknown=(500, 503)) for session in sessions]
        client = server.client(timeout_s=30)
        live = set(range(SESSIONS))
        for step in range(STEPS):
            for index in sorted(live):
                if not writers[index].step(client):
                    # What it wrote last is there or not; nothing more is asked of it.
                    live.discard(index)
                    client = server.client(timeout_s=30)
            if step == STEPS // 2:
                self.house(server, client, copy)

    def house(self, server, client, copy):
        for method, path, body in [
            ("POST", "/v1/sessions/s0/fork", {"to": "fork"}),
            ("POST", "/v1/sessions/fork/purge", None),
            ("DELETE", "/v1/sessions/fork", None),
        ]:
            try:
                client.ask(method, path, body)
            except (OSError, http.client.HTTPException):
                return
        server.run("backup", "--to", copy)
