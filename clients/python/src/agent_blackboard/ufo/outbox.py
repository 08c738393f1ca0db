"""Outboxes: SQLite files of writes that the server has not confirmed, one a process and session.

A write is in the file before the call goes on, and leaves it with the server's answer. The request that carries it,
its Idempotency-Key included, is fixed in the file before it is first sent, so that a repeat by any process never
doubles. The file is locked exclusively as long as its process lives; a file without a lock is adopted. A file that
cannot be read is renamed to `.damaged`, one that has only refused writes to `.refused`.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import logging
import os
import sqlite3
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BlackboardError, Problem
from .operation import Operation
from .place import Place

SUFFIX = ".v1.db"
"""The end of an outbox's name, with the version of its schema."""
BATCH_OPERATIONS_MAX = 1000
BATCH_BYTES_MAX = 7 << 20

_SCHEMA = """
CREATE TABLE IF NOT EXISTS origin (session TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS operation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    batch TEXT,         -- the Idempotency-Key of the request that carries it, once there is one
    agent TEXT,
    method TEXT NOT NULL,   -- empty: a step of a transaction
    path TEXT NOT NULL,
    media_type TEXT NOT NULL,
    condition TEXT NOT NULL,
    place TEXT,         -- the entry that it writes, as JSON
    awaits INTEGER,     -- the operation that appends that entry
    quiet INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS operation_batch ON operation (batch) WHERE batch IS NOT NULL;
CREATE INDEX IF NOT EXISTS operation_awaits ON operation (awaits) WHERE awaits IS NOT NULL;
CREATE TABLE IF NOT EXISTS refused (
    at TEXT NOT NULL, agent TEXT, method TEXT NOT NULL, path TEXT NOT NULL, body TEXT NOT NULL,
    status INTEGER NOT NULL, code TEXT NOT NULL, detail TEXT NOT NULL
);
"""


logger = logging.getLogger("agent_blackboard.ufo")


@dataclass(frozen=True)
class Batch:
    """The operations of one request: steps of one transaction, or a single one."""

    key: str
    rows: list[sqlite3.Row]

    @property
    def single(self) -> bool:
        """Whether a refusal concerns one operation only."""
        return len(self.rows) == 1

    @property
    def place(self) -> dict[str, Any] | None:
        """The entry that the request writes, unless its path says all."""
        stored = self.rows[0]["place"]
        return None if stored is None else dict(json.loads(stored))


class Outbox:
    """The outbox of one process for one session. Its caller keeps two threads from using it at once."""

    def __init__(self, path: Path, database: sqlite3.Connection, session: str, *, adopted: bool = False) -> None:
        self.path = path
        self.session = session
        self.adopted = adopted
        self._database = database
        self._live: dict[int, Operation] = {}
        self._waiting = self._count()

    def __len__(self) -> int:
        """The number of operations that the server has neither confirmed nor refused."""
        return self._waiting

    def put(self, operations: Sequence[Operation]) -> None:
        """Store operations, in this order, in one commit. Raises BlackboardError, and stores none, on a full disk."""
        try:
            with self._database:
                for operation in operations:
                    self._insert(operation)
        except sqlite3.Error as error:
            raise _unwritable(self.path.parent, error) from error
        self._live.update((operation.id, operation) for operation in operations)
        self._waiting += len(operations)

    def _insert(self, operation: Operation) -> None:
        place = operation.place
        row = self._database.execute(
            "INSERT INTO operation (agent, method, path, media_type, condition, place, awaits, quiet, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                operation.agent,
                operation.method,
                operation.path,
                operation.media_type,
                operation.condition,
                None if place is None else place.stored(),
                self._unfinished(place),
                operation.quiet,
                operation.body,
            ),
        )
        operation.id = row.lastrowid or 0

    def _unfinished(self, place: Place | None) -> int | None:
        """The operation of this outbox that appends the entry at a place."""
        operation = None if place is None or place.seq is not None else place.operation
        return operation.id if operation is not None and self._live.get(operation.id) is operation else None

    def batch(self) -> Batch | None:
        """The next request: as it was fixed before, or the oldest operation with the steps that follow it."""
        first = self._database.execute("SELECT * FROM operation ORDER BY id LIMIT 1").fetchone()
        if first is None:
            return None
        if first["batch"]:
            rows = self._database.execute("SELECT * FROM operation WHERE batch = ? ORDER BY id", (first["batch"],))
            return Batch(first["batch"], rows.fetchall())
        rows_together = list(self._together(first))
        key = str(uuid.uuid4())
        with self._database:
            self._database.execute(
                "UPDATE operation SET batch = ? WHERE id BETWEEN ? AND ?",
                (key, first["id"], rows_together[-1]["id"]),
            )
        return Batch(key, rows_together)

    def _together(self, first: sqlite3.Row) -> Iterator[sqlite3.Row]:
        yield first
        if first["method"]:
            return
        following = self._database.execute(
            "SELECT * FROM operation WHERE id > ? ORDER BY id LIMIT ?", (first["id"], BATCH_OPERATIONS_MAX - 1)
        )
        size = len(first["body"].encode())
        for row in following:
            size += len(row["body"].encode()) + 1
            if row["method"] or row["batch"] or row["agent"] != first["agent"] or size > BATCH_BYTES_MAX:
                return
            yield row

    def name(self, batch: Batch, seq: int) -> None:
        """Fix the seq of the entry that a request writes, before it is first sent."""
        row = batch.rows[0]
        with self._database:
            self._database.execute(
                "UPDATE operation SET place = ? WHERE id = ?",
                (json.dumps({"log": json.loads(row["place"])["log"], "seq": seq}), row["id"]),
            )

    def confirm(self, batch: Batch, revision: int | None, seqs: Sequence[int] | None) -> None:
        """Take the answer to a request: `seqs` are those of all its new entries, None where the answer has none."""
        outcomes = []
        with self._database:
            for number, row in enumerate(batch.rows):
                its_own = seqs if batch.single or seqs is None else seqs[number : number + 1]
                outcomes.append((row["id"], its_own))
                self._name_awaiting(row["id"], revision, its_own)
                self._database.execute("DELETE FROM operation WHERE id = ?", (row["id"],))
        for identifier, its_own in outcomes:
            self._waiting -= 1
            operation = self._live.pop(identifier, None)
            if operation is not None:
                operation.succeed(revision, its_own)

    def _name_awaiting(self, identifier: int, revision: int | None, seqs: Sequence[int] | None) -> None:
        awaiting = self._database.execute("SELECT id, place FROM operation WHERE awaits = ?", (identifier,)).fetchall()
        for row in awaiting:
            place = json.loads(row["place"])
            index = place.pop("index")
            if seqs is None:
                place |= {"revision": revision, "position": index}
            elif index < len(seqs):
                place["seq"] = seqs[index]
            self._database.execute(
                "UPDATE operation SET place = ?, awaits = NULL WHERE id = ?", (json.dumps(place), row["id"])
            )

    def part(self, batch: Batch) -> None:
        """Give each operation of a refused request a request of its own."""
        with self._database:
            for row in batch.rows:
                self._database.execute("UPDATE operation SET batch = ? WHERE id = ?", (str(uuid.uuid4()), row["id"]))

    def refuse(self, batch: Batch, problem: Problem) -> Operation | None:
        """Move a single operation to the table `refused`; returns it if this process made it."""
        row = batch.rows[0]
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        method, path = row["method"] or "POST", row["path"] or row["place"] or "transactions"
        reason = (problem.status, problem.code, problem.detail or problem.title)
        with self._database:
            self._database.execute(
                "INSERT INTO refused VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (at, row["agent"], method, path, row["body"], *reason),
            )
        return self.drop(batch, problem)

    def drop(self, batch: Batch, error: Exception | None = None) -> Operation | None:
        """Forget a single operation, whose entry is gone or which was refused."""
        row = batch.rows[0]
        with self._database:
            self._database.execute("DELETE FROM operation WHERE id = ?", (row["id"],))
        self._waiting -= 1
        operation = self._live.pop(row["id"], None)
        if operation is not None:
            operation.fail(error)
        return operation

    def refused(self) -> list[dict[str, Any]]:
        """The operations that the server refused, oldest first."""
        return [dict(row) for row in self._database.execute("SELECT * FROM refused ORDER BY rowid")]

    def close(self) -> None:
        """Release the lock. The file goes if there is nothing left in it, refused writes included."""
        waiting, refused = len(self), self.refused()
        if not waiting and not refused:
            self._unlink()
        self._database.close()
        if waiting:
            return
        if refused:
            with contextlib.suppress(OSError):
                self.path.replace(self.path.with_suffix(".refused"))
        else:
            # Again, for systems where an open file cannot be unlinked.
            self._unlink()

    def _unlink(self) -> None:
        for path in (self.path, self.path.with_name(f"{self.path.name}-wal")):
            with contextlib.suppress(OSError):
                path.unlink()

    def abandon(self) -> None:
        """Leave the file to the parent of a forked process: closing the copy of its connection would truncate it."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._database))

    def _count(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM operation").fetchone()[0])


def create(directory: Path, url: str, session: str, *, own: bool) -> Outbox:
    """Make the outbox of this process for a session. `own`: no other process knows that session."""
    prefix = _prefix(url, None if own else session)
    while True:
        path = directory / f"{prefix}-{time.time_ns():019}-{os.getpid()}{SUFFIX}"
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600, exist_ok=False)
            database = _locked(path)
            if database is None:
                continue
            # An adopter that came between creation and lock has deleted the file again.
            if path.exists():
                with database:
                    database.execute("INSERT INTO origin VALUES (?)", (session,))
                return Outbox(path, database, session)
            database.close()
        except (OSError, sqlite3.Error) as error:
            raise _unwritable(directory, error) from error


def adopt(directory: Path, url: str, session: str) -> list[Outbox]:
    """Take over the outboxes of dead processes: those of this session, and of sessions that no process knows now."""
    found = []
    patterns = [f"{_prefix(url, session)}-*{SUFFIX}", f"{_prefix(url, None)}-*{SUFFIX}"]
    for path in sorted(path for pattern in patterns for path in directory.glob(pattern)):
        try:
            outbox = _adopted(path, session)
        except sqlite3.OperationalError as error:
            logger.warning("the outbox %s cannot be opened now: %s", path, error)
        except sqlite3.DatabaseError as error:
            damaged = path.with_suffix(".damaged")
            with contextlib.suppress(OSError):
                path.replace(damaged)
            logger.warning("an outbox cannot be read, its writes are not sent; it is now %s: %s", damaged, error)
        else:
            if outbox is not None and len(outbox):
                found.append(outbox)
            elif outbox is not None:
                outbox.close()
    return found


def _adopted(path: Path, session: str) -> Outbox | None:
    """The outbox of a dead process; None where its process lives. Raises DatabaseError for a damaged file."""
    database = _locked(path)
    if database is None:
        return None
    try:
        if (found := database.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(found)
        origin = database.execute("SELECT session FROM origin").fetchone()
        return Outbox(path, database, origin["session"] if origin else session, adopted=True)
    except sqlite3.Error:
        database.close()
        raise


def _unwritable(directory: Path, error: Exception) -> BlackboardError:
    return BlackboardError(
        f"the write is not stored: no outbox can be written in {directory}: {error};"
        " make room there, or set BLACKBOARD_OUTBOX to another directory"
    )


def _prefix(url: str, session: str | None) -> str:
    server = hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:12]
    return f"{server}-{'own' if session is None else hashlib.sha256(session.encode()).hexdigest()[:12]}"


def _locked(path: Path) -> sqlite3.Connection | None:
    """The database under an exclusive lock, which lasts as long as the connection; None where another has it."""
    database = sqlite3.connect(path, timeout=0, check_same_thread=False)
    database.row_factory = sqlite3.Row
    try:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.executescript(f"BEGIN EXCLUSIVE; {_SCHEMA} COMMIT;")
    except sqlite3.Error as error:
        database.close()
        if "locked" in str(error):
            return None
        raise
    return database
