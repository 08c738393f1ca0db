"""Damage of files: reported or harmless, never a silent error; `salvage` rescues the sound sessions.

Writers that know their boards make a store, in two states. Then one file of a copy is damaged: a bit flipped, a sector
or a page zeroed, a page written over another, two pages exchanged, its end cut off, the whole file lost, or replaced by
its earlier state. `check`, a start or a read may report it. A session that is shown as sound must have the board of its
last revision, unless the log or `check` reports the damage. Everything that a damaged store serves is in its salvage
too.
"""

import http.client
import os
import shutil
import time
from collections import Counter

import load

SESSIONS = 6
STEPS = 60
TRIALS_IN_SHORT, TRIALS_IN_LONG = 10, 150
PAGE, SECTOR = 4096, 512
KINDS = ["flip", "flip", "flip", "zero", "double", "swap", "cut", "lost", "old"]
# Of no use: an empty file that is locked, room, and what SQLite makes anew.
PASSED_OVER = ("lock", "reserve", ".db-shm")


class Damage:
    """Damages of one store."""

    name = "damage"
    short, long = 1, 25

    def __init__(self, place):
        self.place = place

    def piece(self, number):
        chance = self.place.chance(number)
        sessions, old, new = self.store(chance, is_killed=number % 2 == 0)
        counts = Counter()
        for trial in range(TRIALS_IN_LONG if self.place.is_long else TRIALS_IN_SHORT):
            data = self.place.path(f"trial-{trial}")
            copy(new, data)
            told = damage(data, old, chance)
            if told is None:
                shutil.rmtree(data)
                continue
            try:
                counts += self.trial(data, sessions)
            except (load.Broken, RuntimeError) as broken:
                raise load.Broken(f"{told}: {broken}") from broken
            shutil.rmtree(data)
        return counts

    def store(self, chance, is_killed):
        """A store in two states, and its sessions in the second."""
        data, old = self.place.path("store"), self.place.path("old")
        sessions = [load.Session(f"s{n}", chance.random()) for n in range(SESSIONS)]
        server = self.place.server(data)
        with server:
            self.fill(server, sessions)
            server.kill()
            copy(data, old)
            server.start()
            self.fill(server, sessions)
            # Some of the journal is compacted, some is not.
            time.sleep(chance.choice([0, 1]))
            self.fill(server, sessions[: SESSIONS // 2])
            if is_killed:
                server.kill()
        return sessions, old, data

    def fill(self, server, sessions):
        client = server.client()
        for session in sessions:
            writer = load.Writer(session, lambda: 0)
            for _ in range(STEPS):
                writer.step(client)

    def trial(self, data, sessions):
        """Looks at the damaged store in all ways."""
        counts = Counter(damages=1)
        checked = self.place.command("check", "--data", data)
        told = checked.returncode != 0
        counts["told by check"] += told
        salvaged = data + ".salvaged"
        saved = self.place.command("salvage", "--data", data, "--to", salvaged)
        served = []
        try:
            with self.place.server(data) as server:
                told = told or bool(server.said)
                served = self.look(server, sessions, told, counts)
                server.kill()
        except RuntimeError:
            counts["starts refused"] += 1
        if not os.path.isdir(salvaged):
            if served:
                raise load.Broken(f"nothing is salvaged, and {len(served)} sessions are served: {saved.stdout}{saved.stderr}")
            return counts + Counter(unsalvageable=1)
        rechecked = self.place.command("check", "--data", salvaged)
        # An entry outlives its image.
        unsound = [line for line in rechecked.stdout.splitlines() if "damaged: " in line and "damaged: image " not in line]
        if unsound or (rechecked.returncode != 0 and checked.returncode == 0):
            raise load.Broken(f"what was salvaged is not sound: {rechecked.stdout}{rechecked.stderr}")
        with self.place.server(salvaged) as server:
            for session in served:
                load.judge(server.client(), session, 0)
            server.kill()
        shutil.rmtree(salvaged)
        return counts

    def look(self, server, sessions, told, counts):
        """Reads all sessions; returns those that are shown whole."""
        client, served = server.client(), []
        for session in sessions:
            try:
                answer = client.ask("GET", session.path("/blackboard?include=state"))
            except (OSError, http.client.HTTPException):
                # An answer that cannot be completed is cut off.
                counts["answers cut"] += 1
                client = server.client()
                continue
            if answer.status >= 500:
                counts["sessions refused"] += 1
                continue
            try:
                load.judge(client, session, 0)
                served.append(session)
            except load.Broken:
                if not told and not server.said:
                    raise
                counts["sessions told"] += 1
        return served


def copy(data, to):
    shutil.copytree(data, to, ignore=shutil.ignore_patterns("control.sock"))


def damage(data, old, chance):
    """Damages one file; returns a word on it, or nothing if there was nothing to do."""
    files = [os.path.join(above, name) for above, _, names in os.walk(data) for name in names]
    files = sorted(path for path in files if not path.endswith(PASSED_OVER))
    database = [path for path in files if path.endswith((".db", ".db-wal"))]
    path, kind = chance.choice(chance.choice([files, database])), chance.choice(KINDS)
    size, name = os.path.getsize(path), os.path.relpath(path, data)
    if kind == "old":
        before = os.path.join(old, name)
        if not os.path.exists(before):
            return None
        shutil.copy(before, path)
        return f"{name} of an earlier state"
    if kind == "lost":
        os.remove(path)
        return f"{name} lost"
    if size == 0:
        return None
    with open(path, "r+b") as file:
        if kind == "flip":
            at, bit = chance.randrange(size), chance.randrange(8)
            write(file, at, bytes([read(file, at, 1)[0] ^ (1 << bit)]))
            return f"{name}: bit {bit} of byte {at} flipped"
        if kind == "cut":
            length = chance.randrange(size)
            length -= chance.choice([0, length % PAGE])
            file.truncate(length)
            return f"{name} cut at {length} of {size}"
        unit = chance.choice([PAGE, SECTOR])
        one, other = (chance.randrange(-(-size // unit)) * unit for _ in range(2))
        if kind == "zero":
            write(file, one, bytes(len(read(file, one, unit))))
            return f"{name}: {unit} bytes at {one} zeroed"
        first, second = read(file, one, unit), read(file, other, unit)
        if len(first) != len(second) or first == second:
            return None
        write(file, other, first)
        if kind == "swap":
            write(file, one, second)
        return f"{name}: {unit} bytes at {one} {'exchanged with' if kind == 'swap' else 'written over'} those at {other}"


def read(file, at, count):
    file.seek(at)
    return file.read(count)


def write(file, at, content):
    file.seek(at)
    file.write(content)
