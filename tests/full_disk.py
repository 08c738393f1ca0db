#!/usr/bin/env python3
"""Full disks: deletions succeed, writes resume, and nothing acknowledged is lost.

    tests/full_disk.py [--server PATH] [--disks SYSTEM:MIB,...] [--only NAME,...]

Mounts small disks in a mount namespace of its own: file systems in memory (tmpfs), in images of disks (ext4, xfs, btrfs;
these take root, loop devices and the tools of each), and a directory of btrfs with a quota. As root the server runs as
another user, who may not use the blocks that ext4 keeps for root; the other program below may. A server fills each in several
ways in turn: by appends, by images, by compacting the journal, by a backup, and by a file of another program that leaves no
byte free. Each time every session but two is deleted then: each deletion must succeed, and a write within 10 s of the last
one. A ledger has what was acknowledged; it is compared while the disk is full, after a kill and a start on it, after the
deletions, and after another kill and start. A server that starts where no byte is free must say so. `check` must find the store sound. Where no room can be held for deletions (a quota; btrfs filled by another program),
the server may end, and the deletions come after there is room and a start. Exits with 1 at the first promise that is broken.
"""

import argparse
import base64
import hashlib
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import time

from board_server import Server, picture

# Lines of the log about the disk.
FULL, ROOMY = "the disk is full: only", "the disk has room again"

BACK_S_MAX = 60.0
DISKS = "tmpfs:24,tmpfs:64,tmpfs:260,ext4:64,ext4:260,xfs:320,btrfs:160,quota:64"
SESSIONS = 12
KEPT = ["kept-0", "kept-1"]
ITEM_BYTES = 48 << 10
WRITES_MAX = 20_000
# A refusal for want of room; after so many in a row the disk is full.
FULL_IN_A_ROW = 8


# The user and group of a server that root runs: nobody.
USER = 65534


class Broken(Exception):
    """A promise that was not kept."""


def inside():
    """Runs this script again where mounts are its own, unless it is there already."""
    if os.environ.get("FULL_DISK_INSIDE"):
        return
    apart = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    # Root of a user namespace is no other user outside of it, and may not use root's blocks either.
    os.environ["FULL_DISK_INSIDE"] = "root" if os.geteuid() == 0 else "user"
    os.execvp(apart[0], [*apart, sys.executable, *sys.argv])


def noise(count):
    return os.urandom(count)


def text(count):
    """As many bytes of text, which does not compress by much."""
    return base64.b64encode(noise(count * 3 // 4)).decode()


class Trial:
    """One disk with one server on it, and the ledger of what the server acknowledged."""

    def __init__(self, server, disk):
        self.server, self.disk, self.has_reserve = server, disk, True
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
        if answer.code() == "store-poisoned" and not self.has_reserve:
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
    # The bytes that the log owes to the database would come off the reserve, which is to pay for two starts.
    if trial.server.stop() != 0:
        raise Broken("the server does not end well")
    trial.restart()
    take_rest(trial)
    if trial.append("s-0"):
        trial.fill(trial.append)
    return 0


def take_rest(trial):
    """Takes each byte that is free, also those that only root may use."""
    with open(os.path.join(trial.disk, "ballast"), "ab", buffering=0) as ballast:
        for count in (1 << 20, 512):
            try:
                while True:
                    ballast.write(noise(count))
            except OSError:
                pass


WAYS = [by_appends, by_images, by_settling, by_backup, by_another]


def play(trial, way):
    """Fills the disk one way, deletes, writes, kills and looks again; what to say of it."""
    taken = way(trial)
    free = trial.free()
    trial.ready("full")
    trial.compare("full")
    trial.server.kill()
    restarted = "killed and started with it, "
    if way is by_another:
        # Not a byte is free, and it starts all the same.
        take_rest(trial)
        start_on_full(trial)
        if trial.server.stop() != 0:
            raise Broken("the server does not end well on a full disk")
        take_rest(trial)
        start_on_full(trial)
        restarted = "killed, stopped and started with it, "
    else:
        # A start may find room, such as that of the log: then a write is taken.
        trial.restart()
        if trial.ask("GET", "/readyz").json()["status"] == "ok" and not trial.append("kept-0", 1 << 10):
            raise Broken("/readyz says ok after a start, and no write is taken")
        trial.compare("started on a full disk")
    deleted = trial.delete_others()
    remove_rest(trial.disk)
    back = trial.come_back()
    trial.ready("ok")
    trial.compare("after the deletions")
    trial.server.kill()
    trial.check()
    trial.restart()
    trial.compare("after a kill and a start")
    return (f"{taken} writes until full, {free >> 10} KiB left, {restarted}{deleted} deletions, "
            f"writes back after {back:.1f} s, all there, sound")


def start_on_full(trial):
    """Starts a server where no byte is free, which it must say without a write, and read."""
    trial.restart()
    trial.ready("full")
    trial.compare("started on a full disk")


def play_without_reserve(trial, way, disk):
    """Fills the disk one way, makes room, starts and looks again; what to say of it."""
    try:
        way(trial)
    except (OSError, http.client.HTTPException):
        pass
    ended = trial.server.process.poll() is not None
    trial.server.kill()
    remove_rest(trial.disk)
    disk.relieve()
    trial.check()
    trial.restart()
    trial.compare("after there is room")
    deleted = trial.delete_others()
    back = trial.come_back()
    trial.compare("after the deletions")
    return (f"{'the server ends' if ended else 'the server stays'}, room and a start, all there, {deleted} deletions, "
            f"writes back after {back:.1f} s, sound")


def remove_rest(disk):
    """Removes what another program wrote."""
    for rest in ("copy", "ballast"):
        path = os.path.join(disk, rest)
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.remove(path)
    # btrfs gives the room back with its next transaction.
    os.sync()


class Disk:
    """A small file system, mounted within the block at `path`."""

    def __init__(self, system, mib, scratch):
        self.system, self.mib = system, mib
        self.root = os.path.join(scratch, f"{system}-{mib}")
        self.image = self.root + ".image"
        self.path = os.path.join(self.root, "limited") if system == "quota" else self.root

    def __enter__(self):
        os.mkdir(self.root)
        if self.system == "tmpfs":
            run("mount", "-t", "tmpfs", "-o", f"size={self.mib}m", "tmpfs", self.root)
            return self
        # A quota has room around it.
        size = max(4 * self.mib, 256) if self.system == "quota" else self.mib
        with open(self.image, "wb") as image:
            image.truncate(size << 20)
        make = {"ext4": ["mkfs.ext4", "-q"], "xfs": ["mkfs.xfs", "-q"]}.get(self.system, ["mkfs.btrfs", "-q", "--mixed"])
        run(*make, self.image)
        run("mount", "-o", "loop", self.image, self.root)
        if self.system == "quota":
            run("btrfs", "quota", "enable", self.root)
            run("btrfs", "subvolume", "create", self.path)
            self.limit()
        return self

    def __exit__(self, *_):
        run("umount", "-l", self.root)
        os.rmdir(self.root)
        if self.system != "tmpfs":
            os.remove(self.image)

    def limit(self, to=None):
        if self.system == "quota":
            subvolume = run("btrfs", "inspect-internal", "rootid", self.path).strip()
            run("btrfs", "qgroup", "limit", to or f"{self.mib}M", f"0/{subvolume}", self.root)

    def relieve(self):
        self.limit("none")

    def has_reserve(self, way):
        """Whether the server can hold room for deletions: not under a quota, nor where each change of a file takes room."""
        return self.system != "quota" and (self.system != "btrfs" or way is not by_another)


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stdout.strip()}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="target/debug/blackboard")
    parser.add_argument("--disks", default=DISKS, help=DISKS)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    inside()
    only = set(filter(None, arguments.only.split(",")))
    ways = [way for way in WAYS if not only or way.__name__.removeprefix("by_") in only]
    with tempfile.TemporaryDirectory() as scratch:
        server, user = arguments.server, None
        if os.environ["FULL_DISK_INSIDE"] == "root":
            # The user may not reach the folder of the build.
            user, server = USER, os.path.join(scratch, "blackboard")
            shutil.copy(arguments.server, server)
            os.chmod(scratch, 0o755)
        for named in arguments.disks.split(","):
            system, mib = named.split(":")
            # The database shrinks with later writes, which a quota refuses.
            for some in [[way] for way in ways] if system == "quota" else [ways]:
                with Disk(system, int(mib), scratch) as disk:
                    if not fills(server, user, disk, some):
                        return 1
    return 0


def fills(path, user, disk, ways):
    """Fills a disk in each way; true if no promise is broken."""
    if user is not None:
        os.chown(disk.path, user, user)
    data = os.path.join(disk.path, "data")
    with Server(path, data, log="warn,blackboard_store=info", user=user) as server:
        trial = Trial(server, disk.path)
        try:
            for way in ways:
                print(f"{disk.system} of {disk.mib} MiB, {way.__name__.removeprefix('by_')}: ", end="", flush=True)
                trial.has_reserve = disk.has_reserve(way)
                told = play(trial, way) if trial.has_reserve else play_without_reserve(trial, way, disk)
                print(told, flush=True)
        except (Broken, RuntimeError) as broken:
            print(f"BROKEN: {broken}")
            print("\n".join(server.said[-12:]))
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
