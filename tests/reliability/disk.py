"""Disk at a power cut: its possible contents, from a record of every operation on a directory.

`recorder.c` writes the record. A `Disk` follows it to a moment and keeps two things apart: what is durable, and what
was done since without a sync. `Disk.write_to` makes a directory of what is durable and of a random part of the rest: each
file's unsynced writes are dropped, kept, or kept in sectors of 512 bytes; each unsynced name of a directory is there or
not. That is more than most file systems lose, and all that POSIX lets them lose.
"""

import os
import struct
from dataclasses import dataclass, field

SECTOR = 512

HEAD = struct.Struct("<IHHQQQQ")
OPEN, WRITE, TRUNCATE, SYNC_BEGIN, SYNC_END, RENAME, UNLINK, LINK, MKDIR, RMDIR = range(1, 11)
CREATED = 1
TRUNCATED = 2


@dataclass
class Step:
    """One record, and where it ends in the file of records."""

    end: int
    op: int
    ino: int
    a: int
    b: int
    first: str
    second: str
    data: bytes


def steps(log):
    """The whole records of a log, in order."""
    at = 0
    while at + HEAD.size <= len(log):
        length, first, second, op, ino, a, b = HEAD.unpack_from(log, at)
        if length < HEAD.size or at + length > len(log):
            return
        place = at + HEAD.size
        names = log[place : place + first + second].decode("utf-8", "surrogateescape")
        at += length
        yield Step(at, op, ino, a, b, names[:first], names[first:], bytes(log[place + first + second : at]))


@dataclass
class File:
    """A file's durable bytes, and what was done to it since: a write as (order, place, bytes), a new size as
    (order, size, None)."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list = field(default_factory=list)

    def sync(self, order):
        """Makes durable what was done before that."""
        apply(self.durable, [one for one in self.pending if one[0] < order])
        self.pending = [one for one in self.pending if one[0] >= order]

    def after_cut(self, chance):
        """The bytes that may be found."""
        kind = chance.random()
        if kind < 0.3 or not self.pending:
            return self.durable
        if kind < 0.5:
            return applied(self.durable, self.pending)
        if kind < 0.7:
            # As from a disk that writes in order, with the last write torn.
            upto = chance.randrange(len(self.pending) + 1)
            return applied(self.durable, self.pending[:upto] + torn(self.pending[upto : upto + 1], chance, 0.5))
        share = chance.choice([0.1, 0.5, 0.9])
        return applied(self.durable, torn(self.pending, chance, share))


def applied(durable, pending):
    content = bytearray(durable)
    apply(content, pending)
    return content


def apply(content, pending):
    for _, place, data in pending:
        if data is None:
            del content[place:]
        if place > len(content):
            content.extend(bytes(place - len(content)))
        if data is not None:
            content[place : place + len(data)] = data


def torn(pending, chance, share):
    """A part of these, sector by sector."""
    kept = []
    for order, place, data in pending:
        if data is None:
            if chance.random() < share:
                kept.append((order, place, None))
            continue
        at = place
        while at < place + len(data):
            end = min((at // SECTOR + 1) * SECTOR, place + len(data))
            if chance.random() < share:
                kept.append((order, at, data[at - place : end - place]))
            at = end
    return kept


class Folder:
    """A directory: the names that are there, and those that are durable."""

    def __init__(self):
        self.names, self.durable = {}, {}


@dataclass
class Renaming:
    """A change of names without a sync: (directory, name, what it names then or None)."""

    order: int
    effects: list


class Disk:
    """A directory tree on a disk."""

    def __init__(self, root):
        self.root, self.top = root, Folder()
        # By inode, the file that it is now; an inode's number may be given again.
        self.files = {}
        # A change of names is durable with the sync of any directory that it touches: a journal has it whole.
        self.pending = []
        self.order = 0
        self.syncs = {}

    @classmethod
    def of(cls, root, source):
        """A disk on which all of a directory is durable, to be known as `root`."""
        disk = cls(root)
        folders = {source: disk.top}
        for above, below, names in os.walk(source):
            here = folders[above]
            for name in below:
                folders[os.path.join(above, name)] = here.names[name] = Folder()
            for name in names:
                path = os.path.join(above, name)
                if name.endswith("-shm") or not os.path.isfile(path):
                    continue
                found = os.stat(path)
                if found.st_ino not in disk.files:
                    with open(path, "rb") as content:
                        disk.files[found.st_ino] = File(bytearray(content.read()))
                here.names[name] = disk.files[found.st_ino]
            here.durable = dict(here.names)
        return disk

    def stops(self, done, indexes):
        """Follows these steps; each index, in order, while the disk is as it was before the step there."""
        at = 0
        for index in indexes:
            for step in done[at:index]:
                self.follow(step)
            at = index
            yield index

    def folder(self, path):
        """The directory of a path, and the last name."""
        parts = os.path.relpath(path, self.root).split("/")
        here = self.top
        for part in parts[:-1]:
            here = here.names[part]
        return here, parts[-1]

    def found(self, path):
        if path == self.root:
            return self.top
        here, name = self.folder(path)
        return here.names.get(name)

    def change(self, *effects):
        """Changes names: each a directory, a name, and what it names then."""
        for here, name, node in effects:
            settle(here.names, name, node)
        self.pending.append(Renaming(self.order, list(effects)))

    def follow(self, step):
        """Does what was done."""
        self.order += 1
        if step.op == OPEN:
            if step.a & CREATED:
                self.files[step.ino] = File()
                self.change((*self.folder(step.first), self.files[step.ino]))
            elif step.a & TRUNCATED and step.ino in self.files:
                self.files[step.ino].pending.append((self.order, 0, None))
        elif step.op in (WRITE, TRUNCATE):
            self.files[step.ino].pending.append((self.order, step.a, step.data if step.op == WRITE else None))
        elif step.op == SYNC_BEGIN:
            self.syncs[step.a] = self.order
        elif step.op == SYNC_END:
            self.sync(step, self.syncs.pop(step.a))
        elif step.op == RENAME:
            node = self.found(step.first)
            self.change((*self.folder(step.first), None), (*self.folder(step.second), node))
        elif step.op in (UNLINK, RMDIR):
            self.change((*self.folder(step.first), None))
        elif step.op == LINK:
            self.change((*self.folder(step.second), self.found(step.first)))
        elif step.op == MKDIR:
            self.change((*self.folder(step.first), Folder()))

    def sync(self, step, begun):
        if step.ino in self.files and not isinstance(self.at(step.first), Folder):
            self.files[step.ino].sync(begun)
            return
        here, later = self.at(step.first), []
        for one in self.pending:
            if one.order < begun and any(folder is here for folder, _, _ in one.effects):
                for folder, name, node in one.effects:
                    settle(folder.durable, name, node)
            else:
                later.append(one)
        self.pending = later

    def at(self, path):
        """What a path names; nothing if it, or a directory above it, is gone."""
        try:
            return self.found(path)
        except (KeyError, AttributeError):
            return None

    def kept_names(self, chance):
        """The names that may be found, by directory."""
        kept = {}
        kind = chance.random()
        upto = {0: 0, 1: len(self.pending)}.get(int(kind * 4), chance.randrange(len(self.pending) + 1))
        share = 1.0 if kind < 0.75 else chance.choice([0.2, 0.5, 0.8])
        for one in self.pending[:upto]:
            if chance.random() < share:
                for folder, name, node in one.effects:
                    settle(kept.setdefault(id(folder), dict(folder.durable)), name, node)
        return kept

    def write_to(self, place, chance):
        """Writes what may be found after a cut now into a new directory."""
        kept, written = self.kept_names(chance), {}

        def write(folder, path):
            os.makedirs(path)
            for name, node in sorted(kept.get(id(folder), folder.durable).items()):
                here = os.path.join(path, name)
                if isinstance(node, Folder):
                    write(node, here)
                elif id(node) in written:
                    os.link(written[id(node)], here)
                else:
                    with open(here, "wb") as out:
                        out.write(node.after_cut(chance))
                    written[id(node)] = here

        write(self.top, place)


def settle(names, name, node):
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node
