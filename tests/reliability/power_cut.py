"""Power cuts: acknowledged or shown commits survive, whatever the disk kept of the rest, even in a recovery.

A server works under `recorder.c` for a while. Then, for moments drawn by chance, a directory is made of what the disk may hold
(`disk.py`), a server is started on it, and must show each session as it was when a revision that was known, or a later
one, was its last. That server is recorded too: another cut is drawn in its start and first writes, and judged alike.
`check` must find both sound. With `--sync normal` the same must lose something, or the method sees nothing.
"""

import os
import shutil
import time
from collections import Counter

import load
from disk import SYNC_BEGIN, SYNC_END, TRUNCATE, WRITE, Disk
from place import Record

SESSIONS = 4
CUTS_A_RUN = 10
NEAR_STEPS = 12
LOAD_S = 1.0


class PowerCut:
    """Runs of a server with cuts of power."""

    name = "power-cut"
    arguments = ()
    short, long = 1, 50

    def __init__(self, place):
        self.place, self.images = place, 0

    def server(self, data, record=None):
        return self.place.server(data, self.arguments, record)

    def piece(self, number):
        """One server's work, and cuts in it; the counts."""
        chance = self.place.chance(number)
        data = self.place.path(f"run-{number}")
        record = Record(self.place, f"record-{number}", data)
        sessions = [load.Session(f"s{n}", chance.random()) for n in range(SESSIONS)]
        os.mkdir(data)
        with self.server(data, record) as server:
            work = load.Load(server, sessions, record.place)
            time.sleep(LOAD_S)
            work.end()
            server.kill()
        done, counts = record.steps(), Counter(acknowledged=sum(session.acknowledged for session in sessions))
        state = Disk(data)
        for index in state.stops(done, self.moments(done, chance)):
            counts += self.cut(state, sessions, done[index - 1].end, chance)
        return counts

    def moments(self, done, chance):
        """Steps before which the power goes: half of them anywhere, half soon after a change of names, which are rare."""
        names = [at for at, step in enumerate(done) if step.op not in (WRITE, TRUNCATE, SYNC_BEGIN, SYNC_END)]
        anywhere = chance.sample(range(1, len(done)), CUTS_A_RUN // 2)
        near = [min(at + chance.randrange(1, NEAR_STEPS), len(done) - 1) for at in chance.choices(names, k=CUTS_A_RUN // 2)]
        return sorted(anywhere + near)

    def cut(self, state, sessions, place, chance):
        """A cut here, and one in the recovery from it."""
        data = self.image(state, chance)
        record = Record(self.place, f"recovery-{self.images}", data)
        # All that the image holds is durable.
        after = Disk.of(data, data)
        try:
            with self.server(data, record) as server:
                client = server.client()
                heads = [(load.judge(client, session, place), record.place()) for session in sessions]
                answer = load.expect(client.ask("POST", "/v1/sessions/after/requests", {"n": 1}), 201)
                written = record.place()
                load.expect(answer, 201)
                server.kill()
            self.judge_files(data)
            done = record.steps()
            index = chance.randrange(len(done) + 1)
            for step in done[:index]:
                after.follow(step)
            cut_at = done[index - 1].end if index else 0
            again = self.image(after, chance)
            try:
                with self.server(again) as server:
                    client = server.client()
                    for session, (head, known) in zip(sessions, heads):
                        shown = load.judge(client, session, place)
                        if known <= cut_at and shown < head:
                            raise load.Broken(f"{session.name} was at revision {head} before the second cut, and is at {shown}")
                    found = client.ask("GET", "/v1/sessions/after/requests/1")
                    if written <= cut_at:
                        load.expect(found, 200)
                    server.kill()
                self.judge_files(again)
            finally:
                shutil.rmtree(again)
        finally:
            shutil.rmtree(data)
            os.remove(record.path)
        return Counter(cuts=2)

    def judge_files(self, data):
        self.place.sound(data)

    def image(self, state, chance):
        self.images += 1
        path = self.place.path(f"image-{self.images}")
        state.write_to(path, chance)
        return path


class Control(PowerCut):
    """The same without syncs of each commit, which must lose something."""

    name = "power-cut-control"
    arguments = ("--sync", "normal")
    # The short form ends with the first loss: on a busy machine the server has moments to sync between all writes.
    short, long = 5, 5

    @staticmethod
    def is_enough(counts):
        """True if the short form may end here."""
        return counts["losing"] > 0

    def moments(self, done, chance):
        """Steps of the load: a start has nothing to lose."""
        return sorted(chance.sample(range(len(done) // 2, len(done)), CUTS_A_RUN))

    def cut(self, state, sessions, place, chance):
        try:
            return super().cut(state, sessions, place, chance)
        except load.Broken:
            return Counter(cuts=2, losing=1)

    def judge_files(self, data):
        """A lost end of the log is told and is no damage."""

    @staticmethod
    def judge(counts):
        if not counts["losing"]:
            raise load.Broken("no cut lost anything: the method sees no losses")
