"""Damage of the search index during writes: everything is found again, and nothing else is harmed.

Items are appended and searched; meanwhile sectors and pages of the index and of its log are overwritten, bits flipped and
ends cut off, several times in a row. After that, and again after a kill and a restart, a search must find what was written
since. An index has no checksums, so an earlier item whose words were overwritten without a sign may be missing. At each moment
writes are taken and `/readyz` is 200, and the log has at most a line for each damage: no damage may reach the index that is
made in its place.
"""

import os
import time
from collections import Counter

import damage
import load

ITEMS = 20
DAMAGES_IN_SHORT, DAMAGES_IN_LONG = 6, 8
# The pauses between tries double from 1 s.
WITHIN_S = 300
# Most of a small index is in memory, which hides smaller damages.
KINDS = ["flip", "zero", "double", "cut", "wipe", "wipe"]
SAID = "it is made anew after a pause"


class IndexDamage:
    """Several damages of one index."""

    name = "index-damage"
    short, long = 2, 30

    def __init__(self, place):
        self.place = place

    def piece(self, number):
        chance, counts = self.place.chance(number), Counter()
        data = self.place.path("store")
        index = os.path.join(data, "cache", "search.db")
        with self.place.server(data) as server:
            total = self.append(server, 0)
            self.found(server, total)
            for _ in range(DAMAGES_IN_LONG if self.place.is_long else DAMAGES_IN_SHORT):
                # What is in the log hides the file, and the other way round.
                counts["damages"] += max(harm(path, chance) for path in (index, index + "-wal"))
                total = self.append(server, total)
                server.client().ask("GET", "/v1/search?q=common")
                # The indexer frees its pages when it rests.
                time.sleep(chance.choice([0, 0.3, 0.6]))
            self.found(server, total)
            told = sum(SAID in line for line in server.said)
            if told > counts["damages"]:
                raise load.Broken(f"{told} lines of the log for {counts['damages']} damages")
            counts["rebuilt"] += told
            server.kill()
            server.start()
            total = self.append(server, total)
            self.found(server, total)
            server.kill()
        self.place.sound(data)
        counts["items"] += total
        return counts

    def append(self, server, total):
        client = server.client()
        for n in range(total, total + ITEMS):
            answer = client.ask("POST", "/v1/sessions/s/requests", f'{{"t":"common w{n}"}}'.encode())
            if answer.status != 201:
                raise load.Broken(f"a write beside a damaged index is {answer.status}: {answer.body}")
        return total + ITEMS

    def found(self, server, total):
        """Waits until a search finds each of the last items by its own word."""
        client, end = server.client(), time.monotonic() + WITHIN_S
        missing, answer = set(range(total - ITEMS, total)), None
        while missing:
            ready = client.ask("GET", "/readyz")
            if ready.status != 200:
                raise load.Broken(f"/readyz is {ready.status} beside a damaged index: {ready.body}")
            for n in sorted(missing):
                answer = client.ask("GET", f"/v1/search?q=w{n}")
                if answer.status != 200 or not answer.json()["hits"]:
                    break
                missing.discard(n)
            if missing and time.monotonic() > end:
                raise load.Broken(f"{len(missing)} of the last {ITEMS} items are not found: {answer.status} {answer.body}")
            time.sleep(0.05)


def harm(path, chance):
    """Damages a place of a file, if there is any."""
    try:
        size = os.path.getsize(path)
    except FileNotFoundError:
        return 0
    if size == 0:
        return 0
    with open(path, "r+b") as file:
        kind, unit = chance.choice(KINDS), chance.choice([damage.PAGE, damage.SECTOR])
        one, other = (chance.randrange(-(-size // unit)) * unit for _ in range(2))
        if kind == "flip":
            at = chance.randrange(size)
            damage.write(file, at, bytes([damage.read(file, at, 1)[0] ^ (1 << chance.randrange(8))]))
        elif kind == "zero":
            damage.write(file, one, bytes(len(damage.read(file, one, unit))))
        elif kind == "wipe":
            damage.write(file, 0, b"\xff" * size)
        elif kind == "double":
            damage.write(file, other, damage.read(file, one, unit))
        else:
            file.truncate(one)
    return 1
