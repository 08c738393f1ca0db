"""Upgrades: the next version reads this one's data, even after a start cut off midway, and never the reverse.

The next version has a step more in its schema (`tests/next_version`). A piece has this version fill a directory and kills it,
opens a copy by the next version with a recorder, and compares each answer; then, for moments drawn by chance, makes a
directory of what a disk may hold if the power goes in the upgrade, and opens that.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import load
from board_server import picture
from disk import Disk
from place import Record

ROOT = Path(__file__).resolve().parent.parent.parent
NEXT = ROOT / "target/next-version/blackboard"

PIECES_IN_LONG = 8
CUTS_IN_SHORT, CUTS_IN_LONG = 12, 200
# In which what is left to the background of a start is done too.
SETTLE_S = 1.0

# Retention goes on by itself.
PASSING = ("oldest_revision", "history_bytes")


class Upgrades:
    """Upgrades to the next version, cut off."""

    name = "upgrades"
    short, long = 1, PIECES_IN_LONG

    def __init__(self, place):
        subprocess.run([ROOT / "tests/next_version"], check=True, capture_output=True)
        self.place, self.next = place, place.of(NEXT)

    def piece(self, number):
        chance, data = self.place.chance(number), self.place.path("data")
        answers = filled(self.place, data)
        disk = Disk.of(data, data)
        record = Record(self.place, "record", data)
        self.opened(data, answers, "an upgrade", record)
        done = record.steps()
        cuts = CUTS_IN_LONG if self.place.is_long else CUTS_IN_SHORT
        moments = sorted(chance.sample(range(1, len(done) + 1), min(cuts, len(done))))
        for index in disk.stops(done, moments):
            image = self.place.path(f"image-{index}")
            disk.write_to(image, chance)
            self.opened(image, answers, f"an upgrade, cut before step {index} of {len(done)}")
            shutil.rmtree(image)
        self.rejected(data)
        return Counter(upgrades=1, cuts=len(moments), rejections=1)

    def opened(self, data, answers, told, record=None):
        """Opens a directory by the next version, and compares all that it has."""
        try:
            with self.next.server(data, preloaded=record) as server:
                compare(server.client(), answers)
                after = server.client().ask("POST", "/v1/sessions/after/requests", {"n": 1}, **bearer(answers["token"]))
                load.expect(after, 201)
                if record:
                    time.sleep(SETTLE_S)
                server.kill()
            with self.next.server(data) as server:
                compare(server.client(), answers)
                server.kill()
        except (load.Broken, RuntimeError) as broken:
            raise load.Broken(f"{told}: {broken}") from broken
        self.next.sound(data)

    def rejected(self, data):
        """Raises unless this version rejects a directory of the next one, and changes nothing in it."""
        before = digests(data)
        try:
            with self.place.server(data) as server:
                server.kill()
        except RuntimeError as refused:
            if "written by a newer blackboard" not in str(refused):
                raise load.Broken(f"the data of the next version is rejected without its reason: {refused}") from refused
        else:
            raise load.Broken("the data of the next version is served")
        changed = [path for path, digest in digests(data).items() if before.get(path) != digest]
        if changed:
            raise load.Broken(f"the data of the next version was rejected, but changed: {changed}")


def filled(place, data):
    """Has this version fill a directory with something of everything, and kills it; returns what it answers to reads."""
    with place.server(data) as server:
        fill(server.client(), "first")
        server.stop()
    with place.server(data) as server:
        fill(server.client(), "second")
        more(server.client())
        time.sleep(SETTLE_S)
        write(server.client(), "POST", "/v1/sessions/first/requests", {"last": True})
        token = place.command("token", "create", "--data", data, "--name", "first", "--scopes", "admin").stdout.split()[-1]
        server.kill()
    copy = place.path("copy")
    shutil.copytree(data, copy, ignore=shutil.ignore_patterns("*.sock"))
    with place.server(copy) as server:
        answers = {"token": token, "reads": asked(server.client(), token)}
        server.kill()
    shutil.rmtree(copy)
    return answers


def fill(client, session):
    at = f"/v1/sessions/{session}"
    settings = {"history_keys": ["step", "action"], "history": 3}
    write(client, "PUT", at, {"labels": {"team": "blue"}, "settings": settings})
    write(client, "POST", f"{at}/questions", [{"question": "Which printer?"}, {"question": "Which floor?", "answer": 2}])
    write(client, "POST", f"{at}/requests", ["Print the report", {"n": 1.50, "to": "ann@example.com", "é": None}])
    write(client, "POST", f"{at}/trajectories", [{"step": n, "action": "click", "result": "x" * 40} for n in range(30)])
    image = picture(8, 8, bytes(n % 251 for n in range(192)))
    write(client, "POST", f"{at}/screenshots?metadata=%22dialog%22&image_path=d.png", image, Content_Type="image/png")
    write(client, "POST", f"{at}/agents/HostAgent/memory", [{"step": n, "thought": "t", "cost": 0.25} for n in range(4)])
    write(client, "PUT", f"{at}/state", {"tasks": {"t1": {"status": "ready", "pages": [1, 2]}}, "large": "y" * 9000})
    write(client, "PATCH", f"{at}/state/tasks/t1/pages", {"append": [3]})
    write(client, "PATCH", f"{at}/questions/1", {"answer": "On floor 2"}, Content_Type="application/merge-patch+json")
    write(client, "DELETE", f"{at}/trajectories/3")


def more(client):
    """What only the journal has."""
    write(client, "POST", "/v1/sessions/first/requests", {"late": True}, Idempotency_Key='"late-1"')
    write(client, "POST", "/v1/sessions/gone/requests", {"n": 1})
    write(client, "DELETE", "/v1/sessions/gone")
    write(client, "POST", "/v1/sessions/twice/requests", {"n": 1})
    write(client, "DELETE", "/v1/sessions/twice")
    write(client, "POST", "/v1/sessions/twice/requests", {"n": 2})


def write(client, method, path, body=None, **headers):
    answer = client.ask(method, path, body, **headers)
    if answer.status >= 300:
        raise load.Broken(f"{method} {path}: {answer.status} {answer.body[:300]}")


def asked(client, token):
    """What is answered to reads, by path."""
    paths = ["/v1/sessions/gone", "/v1/sessions/twice/requests"]
    for session in ("first", "second"):
        at = f"/v1/sessions/{session}"
        logs = ("questions", "requests", "trajectories", "screenshots", "agents/HostAgent/memory")
        paths += [at, f"{at}/blackboard", f"{at}/prompt", f"{at}/state", f"{at}/screenshots/1/image"]
        paths += [f"{at}/{log}" for log in logs]
    found = {}
    for path in paths:
        answer = client.ask("GET", path, **bearer(token))
        found[path] = (answer.status, shown(answer))
    return found


def bearer(token):
    """The headers of a request with this token."""
    return {"Authorization": f"Bearer {token}"}


def compare(client, answers):
    """Raises where a server answers other than this version: members may have been added."""
    load.expect(client.ask("GET", "/v1/sessions"), 401)
    for path, (status, expected) in answers["reads"].items():
        answer = client.ask("GET", path, **bearer(answers["token"]))
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


def digests(data):
    """Of each file, and for the database of its content."""
    found = {
        str(path.relative_to(data)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in Path(data).rglob("*")
        if path.is_file() and not path.name.startswith("blackboard.db")
    }
    with tempfile.TemporaryDirectory() as home:
        for path in Path(data).glob("blackboard.db*"):
            shutil.copy(path, home)
        connection = sqlite3.connect(os.path.join(home, "blackboard.db"))
        found["blackboard.db"] = hashlib.sha256("\n".join(connection.iterdump()).encode()).hexdigest()
        connection.close()
    return found
