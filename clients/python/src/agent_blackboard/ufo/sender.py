"""Sender of outboxes: one thread a session, which sends writes in order until the server has them.

A request that reaches nobody, or that the server asks to repeat, is repeated with its key after a pause. A request
that the server refuses is taken apart; a single operation that it refuses is put aside, and the next one goes on.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, quote

from ..errors import EntryNotFound, Problem, SessionNotFound
from .connection import Connection, misdirected, unreached
from .outbox import Batch, Outbox
from .place import log_path

PAUSE_MIN = 0.05
PAUSE_MAX = 2.0
PAGE = 1000

logger = logging.getLogger("agent_blackboard.ufo")


class Sender:
    """The sender of a session's outboxes. `changed` guards them and tells of each outcome."""

    def __init__(
        self,
        connection: Connection,
        changed: threading.Condition,
        adopted: list[Outbox],
        on_success: Callable[[], None],
    ) -> None:
        self.outboxes = list(adopted)
        self.failure: Exception | None = None
        """The failure of the last attempt."""
        self._connection = connection
        self._changed = changed
        self._on_success = on_success
        self._thread: threading.Thread | None = None
        self._awake = bool(adopted)
        self.closed = False
        self._seqs: tuple[tuple[str, str, int], list[int]] | None = None

    def wake(self) -> None:
        """Send what is waiting now, without the rest of a pause."""
        with self._changed:
            if self._thread is None and not self.closed:
                self._thread = threading.Thread(target=self._run, name="agent-blackboard-outbox", daemon=True)
                self._thread.start()
            if misdirected(self.failure):
                self.failure = None
            # After a waking for nothing, the next writes would be sent one by one as they come.
            if self.waiting():
                self._awake = True
            self._changed.notify_all()

    def waiting(self, *, adopted: bool = True) -> int:
        """The number of operations that the server has neither confirmed nor refused."""
        with self._changed:
            return sum(len(outbox) for outbox in self.outboxes if adopted or not outbox.adopted)

    def stop(self) -> None:
        """Send nothing more after the request that is under way."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def close(self, deadline: float) -> None:
        """Stop, wait until the deadline for the request that is under way, and release the outboxes."""
        self.stop()
        if self._thread is not None:
            self._thread.join(max(deadline - time.monotonic(), 0))
        with self._changed:
            for outbox in self.outboxes:
                outbox.close()
            self.outboxes.clear()

    def _run(self) -> None:
        pause = PAUSE_MIN
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self.closed or self._awake)
                if self.closed:
                    return
                self._awake = False
            try:
                failed = self._drain()
            except Exception as error:  # noqa: BLE001 - the thread outlives every failure
                failed = error
                with self._changed:
                    self.failure = error
                    self._changed.notify_all()
            if failed is None:
                pause = PAUSE_MIN
            else:
                self._pause(failed, pause * random.uniform(0.5, 1.0))
                pause = min(2 * pause, PAUSE_MAX)

    def _pause(self, error: Exception, seconds: float) -> None:
        if not unreached(error) and not misdirected(error):
            logger.error("sending failed; the writes stay in the outbox", exc_info=error)
        with self._changed:
            self._changed.wait_for(lambda: self.closed or self._awake, seconds)
            self._awake = True

    def _drain(self) -> Exception | None:
        """Send all outboxes, the oldest first. An adopted one that fails by itself delays no other: it is returned."""
        failed: Exception | None = None
        for outbox in list(self.outboxes):
            try:
                while self._send(outbox):
                    pass
            except Exception as error:
                alone = isinstance(error, Problem) or not unreached(error)
                if not outbox.adopted or misdirected(error) or not alone:
                    raise
                failed = error
                continue
            with self._changed:
                if outbox.adopted and outbox in self.outboxes and not len(outbox):
                    self.outboxes.remove(outbox)
                    outbox.close()
        return failed

    def _send(self, outbox: Outbox) -> bool:
        """Send the next request of an outbox; whether more is waiting.

        This is seen together with the outcome: writes that come after it are sent at the next waking, together.
        """
        with self._changed:
            batch = None if self.closed else outbox.batch()
        if batch is None:
            return False
        answer: dict[str, Any] | None = None
        refusal: Problem | None = None
        try:
            answer = self._ask(outbox, batch)
        except Problem as problem:
            if unreached(problem) or misdirected(problem):
                raise
            refusal = problem
        with self._changed:
            if self.closed:
                return False
            self._settle(outbox, batch, answer, refusal)
            self.failure = None
            self._on_success()
            if not self.waiting():
                self._awake = False
            self._changed.notify_all()
            return len(outbox) > 0

    def _settle(self, outbox: Outbox, batch: Batch, answer: dict[str, Any] | None, refusal: Problem | None) -> None:
        """Take the outcome of a request. An entry that is gone stays so, and its change or deletion is dropped."""
        if answer is not None:
            outbox.confirm(batch, *_outcome(batch, answer))
        elif refusal is None or (batch.place and isinstance(refusal, (EntryNotFound, SessionNotFound))):
            outbox.drop(batch)
        elif batch.single:
            outbox.refuse(batch, refusal)
            logger.warning("the server rejected a write for good; it is kept in %s: %s", outbox.path, refusal)
        else:
            outbox.part(batch)

    def _ask(self, outbox: Outbox, batch: Batch) -> dict[str, Any] | None:
        """Send a request; None where the entry that it writes is gone."""
        row = batch.rows[0]
        headers = {"Idempotency-Key": batch.key}
        if row["agent"]:
            headers["X-Agent-ID"] = quote(row["agent"])
        if row["condition"]:
            headers[row["condition"]] = "*"
        method, path, body = row["method"], row["path"], row["body"]
        if not method:
            steps = ",".join(step["body"] for step in batch.rows)
            method, path, body = "POST", "transactions", f'{{"then":[{steps}]}}'
        if place := batch.place:
            seq = place.get("seq") or self._seq(outbox, place)
            if seq is None:
                return None
            if "seq" not in place:
                with self._changed:
                    outbox.name(batch, seq)
            path = f"{log_path(place['log'])}/{seq}"
        path, _, query = path.partition("?")
        content = body.encode() if body else None
        if content is not None:
            headers["Content-Type"] = row["media_type"]
        params = dict(parse_qsl(query, keep_blank_values=True))
        answer = self._connection.ask(method, outbox.session, path, params=params, content=content, headers=headers)
        return dict(answer.json())

    def _seq(self, outbox: Outbox, place: dict[str, Any]) -> int | None:
        """The seq of the entry at a position of a log as it was; None where the append of the entry was refused."""
        if place.get("revision") is None:
            return None
        log, revision = place["log"], place["revision"]
        board = (outbox.session, log, revision)
        if self._seqs is None or self._seqs[0] != board:
            seqs: list[int] = []
            more, after = True, 0
            while more:
                params = {"at": revision, "after": after, "limit": PAGE, "keys": "[]", "images": "none"}
                page = self._connection.ask("GET", outbox.session, log_path(log), params=params).json()
                seqs.extend(entry["seq"] for entry in page["entries"])
                more, after = page["more"], page["next"]
            self._seqs = board, seqs
        position = place["position"]
        return self._seqs[1][position] if position < len(self._seqs[1]) else None


def _outcome(batch: Batch, answer: dict[str, Any]) -> tuple[int | None, list[int] | None]:
    """The revision of an answer and the seqs of the entries that it made, where it tells them."""
    if "results" in answer:
        seqs = [int(result.get("seq", 0)) for result in answer["results"]]
        return (int(answer["revision"]) if answer["succeeded"] else None), seqs
    seqs = [int(entry["seq"]) for entry in answer.get("entries", ())]
    # A log that is replaced by what it has keeps its entries, and a replaced board tells none.
    return int(answer["revision"]), seqs or (None if batch.rows[0]["method"] == "PUT" else [])
