#!/usr/bin/env python3
"""Full disks: deletions succeed, writes resume, and nothing acknowledged is lost.

    tests/full_disk.py [--server PATH] [--sizes MIB,...] [--only NAME,...]

Mounts a small file system in memory, in a mount namespace of its own, for each size (24, 64 and 260 MiB), and lets a
server fill it in several ways in turn: by appends, by images, by settling the journal, by a backup, and by a file of
another program that leaves no byte free. Each time every session but two is deleted then: each deletion must succeed,
and a write within 10 s of the last one. A ledger has what was acknowledged; it is compared while the disk is full,
after the deletions, and after a kill and a start. `check` must find the store sound. Exits with 1 at the first
promise that is broken.
"""

import argparse
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

from board_server import Server, picture

# Lines of the log about the disk.
FULL, ROOMY = "the disk is full: only", "the disk has room again"

BACK_S_MAX = 10.0
SESSIONS = 12
KEPT = ["kept-0", "kept-1"]
ITEM_BYTES = 48 << 10
WRITES_MAX = 20_000
# A refusal for want of room; after so many in a row the disk is full.
FULL_IN_A_ROW = 8


class Broken(Exception):
    """A promise that was not kept."""


def inside():
    """Runs this script again where mounts are its own, unless it is there already."""
    if os.environ.get("FULL_DISK_INSIDE") == "yes":
        return
    apart = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    os.environ["FULL_DISK_INSIDE"] = "yes"
    os.execvp(apart[0], [*apart, sys.executable, *sys.argv])


def noise(count):
    return os.urandom(count)


def text(count):
    """As many bytes of text, which does not compress by much."""
    return base64.b64encode(noise(count * 3 // 4)).decode()


class Trial:
    """One disk with one server on it, and the ledger of what the server acknowledged."""

    def __init__(self, server, disk):
        self.server, self.disk = server, disk
        self.ledger, self.client = {}, server.client()
        self.started = 0

    def ask(self, method, path, body=None, **headers):
        return self.client.ask(method, path, body, **headers)

    def append(self, session, size=ITEM_BYTES):
        """Appends one item; whether it was taken."""
        item = {"n": len(self.ledger.get(session, [])), "text": text(size)}
        return self.note(session, "trajectories", item["text"], self.ask(
            "POST", f"/v1/sessions/{session}/trajectories", item))

    def screenshot(self, session):
        """Posts an image of some 100 KB; whether it was taken."""
        image = picture(200, 170, noise(200 * 170 * 3))
        path = f"/v1/sessions/{session}/screenshots"
        return self.note(session, "screenshots", image, self.ask("POST", path, image, Content_Type="image/png"))

    def note(self, session, log, content, answer):
        if answer.status == 201:
            content = content if isinstance(content, bytes) else content.encode()
            seq = answer.json()["entries"][0]["seq"]
            self.ledger.setdefault(session, []).append((log, seq, hashlib.sha256(content).hexdigest()))
            return True
        if (answer.status, answer.code()) == (507, "store-full"):
            told = answer.json()
            if told["directory"] != self.server.data or told["free_bytes"] > self.free() + (64 << 20) or not told["reserve_bytes"]:
                raise Broken(f"the refusal does not tell the free space: {told}")
            return False
        raise Broken(f"a write to {session} is answered {answer.status} {answer.body[:200]!r}")

    def fill(self, write):
        """Writes to all sessions in turn until nothing more is taken; how many writes were."""
        names = KEPT + [f"s-{n}" for n in range(SESSIONS)]
        taken = refused = 0
        while refused < FULL_IN_A_ROW:
            if taken >= WRITES_MAX:
                raise Broken(f"after {taken} writes the disk is not full")
            # The first few go to those that are kept; then these rest, so that the others are most of it.
            session = names[taken % len(names)] if taken < 4 * len(names) else names[2 + taken % SESSIONS]
            if write(session):
                taken, refused = taken + 1, 0
            else:
                refused += 1
        return taken

    def compare(self, when):
        """Reads all that is in the ledger."""
        for session, entries in self.ledger.items():
            for log, seq, digest in entries:
                if log == "trajectories":
                    answer = self.ask("GET", f"/v1/sessions/{session}/{log}/{seq}")
                    content = answer.status == 200 and answer.json()["item"]["text"].encode()
                else:
                    answer = self.ask("GET", f"/v1/sessions/{session}/{log}/{seq}/image")
                    content = answer.status == 200 and answer.body
                if not content or hashlib.sha256(content).hexdigest() != digest:
                    raise Broken(f"{when}: {session}/{log}/{seq} was acknowledged and is {answer.status}")

    def delete_others(self):
        """Deletes each session but those that are kept; how many."""
        others = [name for name in self.ledger if name not in KEPT]
        for name in others:
            answer = self.ask("DELETE", f"/v1/sessions/{name}")
            if answer.status != 200:
                raise Broken(f"deleting {name} is answered {answer.status} {answer.body[:200]!r}")
            del self.ledger[name]
        return len(others)

    def come_back(self):
        """Waits until a write is taken again; how long that took."""
        begun = time.monotonic()
        while not self.append("kept-0"):
            if time.monotonic() - begun > BACK_S_MAX:
                raise Broken(f"writes are refused {BACK_S_MAX:.0f} s after the deletions; free: {self.free() >> 10} KiB")
            time.sleep(0.1)
        return time.monotonic() - begun

    def ready(self, status):
        """Waits until the server says whether the disk is full, in `/readyz` and last in its log."""
        begun = time.monotonic()
        while True:
            answer = self.ask("GET", "/readyz")
            lines = [line for line in self.server.said[self.started:] if FULL in line or ROOMY in line]
            # A server that finds room when it starts has nothing to say.
            told = lines[-1] if lines else ROOMY
            if answer.json()["status"] == status and (FULL if status == "full" else ROOMY) in told:
                return
            if answer.status != 200 or time.monotonic() - begun > BACK_S_MAX:
                raise Broken(f"/readyz says {answer.status} {answer.body!r} and the log {told!r} instead of {status}")
            time.sleep(0.05)

    def free(self):
        found = os.statvfs(self.disk)
        return found.f_bavail * found.f_frsize

    def restart(self):
        self.client.close()
        self.started = len(self.server.said)
        self.server.start()
        self.client = self.server.client()

    def check(self):
        """With no server running."""
        checked = self.server.run("check")
        if checked.returncode != 0:
            raise Broken(f"check says: {checked.stdout}{checked.stderr}")


def by_appends(trial):
    return trial.fill(trial.append)


def by_images(trial):
    return trial.fill(trial.screenshot)


def by_settling(trial):
    """Many small commits of many sessions, which the idle store packs, where that takes room too."""
    names = [f"s-{n}" for n in range(SESSIONS)]
    taken = 0
    while trial.free() > 0 and taken < WRITES_MAX and trial.append(names[taken % SESSIONS], 2 << 10):
        taken += 1
    time.sleep(3)
    return taken + trial.fill(trial.append)


def by_backup(trial):
    """A backup on the same disk, which fits or says that it does not; then the rest."""
    taken = 0
    total = os.statvfs(trial.disk).f_blocks * os.statvfs(trial.disk).f_frsize
    names = KEPT + [f"s-{n}" for n in range(SESSIONS)]
    while trial.free() > total * 6 // 10 and trial.append(names[taken % len(names)]):
        taken += 1
    copy = os.path.join(trial.disk, "copy")
    for _ in range(2):
        made = trial.server.run("backup", "--to", copy)
        if made.returncode not in (0, 1):
            raise Broken(f"backup exits with {made.returncode}: {made.stderr}")
        if made.returncode == 0:
            shutil.rmtree(copy)
    made = trial.server.run("backup", "--to", copy)
    taken += trial.fill(trial.append)
    return taken


def by_another(trial):
    """Another program takes the last byte."""
    for n in range(40):
        if not trial.append((KEPT + [f"s-{n}" for n in range(SESSIONS)])[n % (SESSIONS + 2)]):
            break
    with open(os.path.join(trial.disk, "ballast"), "wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(noise(1 << 20))
        except OSError:
            pass
        try:
            while True:
                ballast.write(noise(512))
        except OSError:
            pass
    if trial.append("s-0"):
        trial.fill(trial.append)
    return 0


WAYS = [by_appends, by_images, by_settling, by_backup, by_another]


def play(trial, way):
    """Fills the disk one way, deletes, writes, kills and looks again; what to say of it."""
    taken = way(trial)
    free = trial.free()
    trial.ready("full")
    trial.compare("full")
    restarted = ""
    if way is by_another:
        # Not a byte is free, and it starts all the same.
        if trial.server.stop() != 0:
            raise Broken("the server does not end well on a full disk")
        trial.restart()
        trial.compare("started on a full disk")
        restarted = "stopped and started with it, "
    deleted = trial.delete_others()
    for rest in ("copy", "ballast"):
        path = os.path.join(trial.disk, rest)
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.remove(path)
    back = trial.come_back()
    trial.ready("ok")
    trial.compare("after the deletions")
    trial.server.kill()
    trial.check()
    trial.restart()
    trial.compare("after a kill and a start")
    return (f"{taken} writes until full, {free >> 10} KiB left, {restarted}{deleted} deletions, "
            f"writes back after {back:.1f} s, all there, sound")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="target/debug/blackboard")
    parser.add_argument("--sizes", default="24,64,260")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    inside()
    only = set(filter(None, arguments.only.split(",")))
    with tempfile.TemporaryDirectory() as scratch:
        for size in map(int, arguments.sizes.split(",")):
            disk = os.path.join(scratch, f"disk-{size}")
            os.mkdir(disk)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", disk], check=True)
            try:
                with Server(arguments.server, os.path.join(disk, "data"), log="warn,blackboard::store=info") as server:
                    trial = Trial(server, disk)
                    for way in WAYS:
                        name = way.__name__.removeprefix("by_")
                        if only and name not in only:
                            continue
                        print(f"{size} MiB, {name}: ", end="", flush=True)
                        print(play(trial, way), flush=True)
            except Broken as broken:
                print(f"BROKEN: {broken}")
                print("\n".join(server.said[-12:]))
                return 1
            finally:
                subprocess.run(["umount", "-l", disk], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
