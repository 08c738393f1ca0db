"""Upgrades: data of every earlier format comes up whole, also where an upgrade was cut off at any moment.

`formats/` has a data directory of each format, written by a server of that time, with what that server answered
(`older` made them). A piece opens one of them with a recorder and compares each answer; then, for moments drawn by chance,
makes a directory of what a disk may hold if the power goes in the upgrade, and opens that.
"""

import json
import os
import shutil
import tarfile
import time
from collections import Counter
from pathlib import Path

import load
from disk import Disk
from place import Record

FORMATS = Path(__file__).resolve().parent / "formats"
FIXTURES = sorted(FORMATS.glob("*.tar.xz"))
ANSWERS = "answers.json"

CUTS_IN_SHORT, CUTS_IN_LONG = 2, 200
# In which what is left to the background of a start is done too.
SETTLE_S = 1.0

# Retention goes on by itself.
PASSING = ("oldest_revision", "history_bytes")


class Upgrades:
    """Upgrades of each format, cut off."""

    name = "upgrades"
    short, long = len(FIXTURES), len(FIXTURES)

    def __init__(self, place):
        self.place = place

    def piece(self, number):
        fixture, chance = FIXTURES[number], self.place.chance(number)
        data = self.place.path("data")
        answers = unpack(fixture, data)
        disk = Disk.of(data, data)
        record = Record(self.place, "record", data)
        self.opened(data, answers, fixture.name, record)
        done = record.steps()
        cuts = CUTS_IN_LONG if self.place.is_long else CUTS_IN_SHORT
        moments = sorted(chance.sample(range(1, len(done) + 1), min(cuts, len(done))))
        for index in disk.stops(done, moments):
            image = self.place.path(f"image-{index}")
            disk.write_to(image, chance)
            self.opened(image, answers, f"{fixture.name}, cut before step {index} of {len(done)}")
            shutil.rmtree(image)
        return Counter(formats=1, cuts=len(moments))

    def opened(self, data, answers, told, record=None):
        """Opens a directory, and compares all that it has."""
        try:
            with self.place.server(data, preloaded=record) as server:
                compare(server.client(), answers)
                after = server.client().ask("POST", "/v1/sessions/after/requests", {"n": 1}, **bearer(answers["token"]))
                load.expect(after, 201)
                if record:
                    time.sleep(SETTLE_S)
                server.kill()
            with self.place.server(data) as server:
                compare(server.client(), answers)
                server.kill()
        except (load.Broken, RuntimeError) as broken:
            raise load.Broken(f"{told}: {broken}") from broken
        self.place.sound(data)


def unpack(fixture, data):
    """Makes the data directory of a fixture; returns the answers of its time."""
    os.mkdir(data)
    with tarfile.open(fixture) as packed:
        answers = json.load(packed.extractfile(ANSWERS))
        for member in packed.getmembers():
            if member.name.startswith("data/"):
                # Without an extraction filter, which Debian 12's Python does not have.
                path = os.path.join(data, member.name.removeprefix("data/"))
                if member.isdir():
                    os.makedirs(path)
                elif member.isfile():
                    with open(path, "wb") as out:
                        shutil.copyfileobj(packed.extractfile(member), out)
    return answers


def bearer(token):
    """The headers of a request with this token."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def compare(client, answers):
    """Raises where a server says other than the one of that time: members may have been added."""
    token = answers["token"]
    if token:
        load.expect(client.ask("GET", "/v1/sessions"), 401)
    for path, (status, expected) in answers["reads"].items():
        answer = client.ask("GET", path, **bearer(token))
        if answer.status != status:
            raise load.Broken(f"GET {path} was {status}, and is {answer.status}: {answer.body[:300]}")
        if status < 400:
            lacking("", expected, shown(answer), path)


def lacking(at, expected, found, path):
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected:
            if key not in PASSING:
                lacking(f"{at}/{key}", expected[key], found.get(key), path)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, (one, other) in enumerate(zip(expected, found)):
            lacking(f"{at}/{index}", one, other, path)
    elif expected != found:
        raise load.Broken(f"GET {path}: {at} was {json.dumps(expected)[:200]}, and is {json.dumps(found)[:200]}")


def shown(answer):
    """An answer as a JSON value."""
    kind = answer.headers.get("Content-Type", "")
    return answer.json() if "json" in kind else answer.body.decode("latin-1")
