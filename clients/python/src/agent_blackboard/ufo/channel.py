"""Channels: what a process shares about one session, its outbox, its sender and the last answer.

A call waits at most `block_max`. A write is in the outbox before anything else happens. A read shows every earlier
write of this process: it waits for the outbox to be empty and asks the server, or, while the server is away, adds
those writes to the last answer.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from ..errors import BlackboardError, ConnectionFailed, PathNotFound, SessionNotFound, UnsupportedValue
from . import outbox
from .answer import Answer, copied, empty, link, parsed
from .connection import Connection, misdirected, unreached
from .operation import Operation
from .sender import Sender
from .settings import Settings

LOOP_WAIT = 0.3
"""The longest wait of a flush inside an event loop, in seconds."""
REUSE = 1.0
"""The time in which the answer of `is_empty()` serves the prompt too, in seconds."""
PROBE_EVERY = 1.0
PROBE_TIMEOUT = 0.5
PATH_MAX = 32 << 10
SINCE_BYTES_MAX = 64 << 20
"""The writes since the last answer that are kept for stale reads, in bytes."""

logger = logging.getLogger("agent_blackboard.ufo")


class Channel:
    """A session as this process sees it. `own`: the process made its name, so nobody else knows the session yet."""

    def __init__(self, settings: Settings, session: str, *, own: bool) -> None:
        self.settings = settings
        self.session = session
        self.own = own
        self.asked: list[tuple[str, str]] = []
        """Questions that were answered on the board, with their answers, until UFO adds them once more."""
        self._answer = empty() if own else None
        self._values: dict[str, Any] = {}
        self._start()

    def _start(self) -> None:
        self.connection = Connection(self.settings)
        self.changed = threading.Condition()
        self._reading = threading.Lock()
        adopted = outbox.adopt(self.settings.outbox_directory(), self.settings.url, self.session)
        self.sender = Sender(self.connection, self.changed, adopted, self._reached)
        self._outbox: outbox.Outbox | None = None
        self._away = False
        self._slow = False
        self._probed_at = 0.0
        self._reached_at = -math.inf
        self._kept_at: float | None = None
        self._since: list[Operation] = []
        self._since_bytes = 0
        if adopted:
            logger.warning("sending the writes that %d ended processes left", len(adopted))
            self.sender.wake()

    def restart(self) -> None:
        """Start anew in a forked process, which shares neither the parent's outboxes nor its connections."""
        for box in self.sender.outboxes:
            box.abandon()
        self.own = False
        self._start()

    def write(self, *operations: Operation) -> None:
        """Store operations and send them in their order.

        Outside an event loop this waits until the server has them, and raises the Problem of one that it refused.
        Inside one they are sent together at the loop's next turn.
        """
        if not operations:
            return
        self.store(*operations)
        loop = running_loop()
        if loop is not None:
            loop.call_soon(self._flush_briefly)
            return
        self.sender.wake()
        if not self.wait(lambda: all(operation.finished for operation in operations), self.settings.block_max):
            self.raise_misdirected()
            self._lost(self.sender.failure)
        for operation in operations:
            if operation.error is not None and not operation.quiet:
                raise operation.error

    def store(self, *operations: Operation) -> None:
        """Put operations into the outbox. Raises BlackboardError if it cannot be written.

        Raises UnsupportedValue for an address that no server takes: it would stay at the outbox's head for ever.
        """
        if any(len(operation.path) > PATH_MAX for operation in operations):
            raise UnsupportedValue(f"the address of the write has more than {PATH_MAX} characters; use a shorter name")
        with self.changed:
            if self.sender.closed:
                raise BlackboardError("the write is not stored: close() has ended this board; make a new one")
            if self._outbox is None:
                self._outbox = outbox.create(
                    self.settings.outbox_directory(), self.settings.url, self.session, own=self.own
                )
                self.sender.outboxes.append(self._outbox)
            for operation in operations:
                operation.agent = self.settings.agent
            self._outbox.put(operations)
            self._remember(operations)

    def answer(self, *, keep: bool = False, kept: bool = False) -> Answer:
        """The board, as it is now or, while the server is away, as far as it is known. It must not be changed.

        `keep` lets the next read with `kept` have the same answer, within a second and without a write between.
        """
        deadline = time.monotonic() + self.settings.block_max
        with self._reading:
            kept_at, self._kept_at = self._kept_at, None
            if kept and kept_at is not None and time.monotonic() - kept_at < REUSE and self._answer is not None:
                return self._answer
            fetched = self._fetch(deadline) if self._flushed(deadline) else None
            if fetched is None:
                return self._stale()
            if keep:
                self._kept_at = time.monotonic()
            return fetched

    def value(self, path: str, default: Any = None) -> Any:
        """A value of the state, or `default` where there is none; while the server is away, the last one known."""
        deadline = time.monotonic() + self.settings.block_max
        fresh = False
        if self._flushed(deadline):
            try:
                self._values[path] = self._ask(f"state/{quote(path)}", deadline).json()
                fresh = True
            except (PathNotFound, SessionNotFound):
                self._values[path] = default
                fresh = True
            except Exception as error:
                if not unreached(error):
                    raise
                self._lost(error)
        if not fresh and (path not in self._values or not self.settings.stale_reads):
            raise ConnectionFailed(f"the state of session {self.session!r} cannot be read: the server is away")
        return copied(self._values[path])

    def know(self, path: str, value: Any) -> None:
        """Remember a value that this process has written."""
        self._values[path] = copied(value)

    def fetch(self, path: str, params: dict[str, Any]) -> Any:
        """Any other resource of the session, as the server's JSON. Raises ConnectionFailed while it is away."""
        deadline = time.monotonic() + self.settings.block_max
        if not self._flushed(deadline):
            raise ConnectionFailed(f"{self.waiting()} writes to session {self.session!r} have not reached the server")
        return self._ask(path, deadline, params=params).json()

    def flush(self, timeout: float) -> bool:
        """Send everything, and tell whether the server has it within `timeout` seconds."""
        self.sender.wake()
        with self.changed:
            self.changed.wait_for(lambda: not self.waiting() or misdirected(self.sender.failure), timeout)
            return not self.waiting()

    def waiting(self) -> int:
        """The number of operations that the server has neither confirmed nor refused."""
        return self.sender.waiting()

    def refused(self) -> list[dict[str, Any]]:
        """The operations that the server refused for good, oldest first."""
        with self.changed:
            return [row for box in self.sender.outboxes for row in box.refused()]

    def wait(self, done: Callable[[], bool], seconds: float, *, failing_ends: bool = False) -> bool:
        """Wait for an outcome of the sender; not at all while the server is known to be away."""

        def ended() -> bool:
            failure = self.sender.failure
            return done() or misdirected(failure) or (failing_ends and failure is not None)

        with self.changed:
            if not self._away:
                self.changed.wait_for(ended, seconds)
            return done()

    def close(self, deadline: float) -> None:
        """Stop sending, for good; what is waiting stays in the outbox. Waits for a request that is under way."""
        self.sender.close(deadline)
        self.connection.close()

    def _remember(self, operations: tuple[Operation, ...]) -> None:
        self._kept_at = None
        self._since.extend(operation for operation in operations if operation.effect)
        self._since_bytes += sum(len(operation.body) for operation in operations)
        if self._since_bytes > SINCE_BYTES_MAX:
            self._answer, self._since, self._since_bytes = None, [], 0

    def _flush_briefly(self) -> None:
        self.sender.wake()
        if not self._slow and not self.wait(self._sent, LOOP_WAIT, failing_ends=True):
            self._slow = True
            if self.sender.failure is not None:
                self._lost(self.sender.failure)

    def _flushed(self, deadline: float) -> bool:
        """Whether the server has every earlier write of this process."""
        if self._sent():
            return True
        self.sender.wake()
        if self.wait(self._sent, deadline - time.monotonic(), failing_ends=running_loop() is not None):
            return True
        self.raise_misdirected()
        self._lost(self.sender.failure)
        return False

    def _sent(self) -> bool:
        return not self.sender.waiting(adopted=False)

    def raise_misdirected(self) -> None:
        """Raise the last failure where no request at all can succeed with this address and token."""
        failure = self.sender.failure
        if failure is not None and misdirected(failure):
            raise failure

    def _fetch(self, deadline: float) -> Answer | None:
        """The server's answer; None where it is away."""
        # Compressing screenshots takes the server longer than sending them.
        headers = {"Accept-Encoding": "identity"}
        last = self._answer
        if last is not None and last.etag:
            headers["If-None-Match"] = last.etag
        try:
            got = self._ask("blackboard", deadline, headers=headers)
        except SessionNotFound:
            fresh = empty()
        except Exception as error:
            if not unreached(error):
                raise
            self._lost(error)
            return None
        else:
            if got.status == 304 and last is not None:
                fresh = last
            else:
                fresh = parsed(self, got.revision or 0, got.etag, got.json())
                link(fresh, self._supplemented(self._answer or empty()))
        with self.changed:
            self._answer = fresh
            self._since = [operation for operation in self._since if _lasting(operation, fresh)]
            self._since_bytes = sum(len(operation.body) for operation in self._since)
        return fresh

    def _ask(
        self,
        path: str,
        deadline: float,
        *,
        params: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Any:
        """One read, tried again until the deadline; inside an event loop and while the server is away only once."""
        pause = 0.05
        while True:
            now = time.monotonic()
            if self._away and now - self._probed_at < PROBE_EVERY:
                raise ConnectionFailed("the server is away")
            timeout = PROBE_TIMEOUT if self._away else max(deadline - now, PROBE_TIMEOUT / 10)
            try:
                answer = self.connection.ask("GET", self.session, path, params=params, headers=headers, timeout=timeout)
            except Exception as error:
                self._probed_at = time.monotonic()
                rest = deadline - self._probed_at
                if not unreached(error) or self._away or rest < pause or running_loop() is not None:
                    raise
                time.sleep(pause)
                pause *= 2
            else:
                self._reached()
                return answer

    def _stale(self) -> Answer:
        if self._answer is None or not self.settings.stale_reads:
            known = "an older answer may not be used" if self._answer is not None else "no answer is known yet"
            raise ConnectionFailed(
                f"session {self.session!r} cannot be read: {self.settings.url} is away, and {known};"
                f" {self.waiting()} writes are in the outbox"
            )
        return self._supplemented(self._answer)

    def _supplemented(self, known: Answer) -> Answer:
        """An answer with the writes of this process since."""
        answer = known.copy()
        with self.changed:
            for operation in self._since:
                if operation.effect is not None and _lasting(operation, known):
                    operation.effect(answer)
        return answer

    def _lost(self, error: Exception | None) -> None:
        """Take note that the server is away, and say so once. A server that confirms write after write is only slow."""
        with self.changed:
            slow = error is None and time.monotonic() - self._reached_at < self.settings.block_max
            if not self._away and not slow:
                self._away = True
                self._probed_at = time.monotonic()
                logger.warning(
                    "the server %s is away%s: writes stay in the outbox and are sent when it is back,"
                    " reads answer from the last answer and those writes",
                    self.settings.url,
                    f" ({error})" if error else "",
                )

    def _reached(self) -> None:
        with self.changed:
            self._reached_at = time.monotonic()
            self._slow = False
            if self._away:
                self._away = False
                logger.warning("the server %s is back", self.settings.url)
                self.sender.wake()


def _lasting(operation: Operation, answer: Answer) -> bool:
    """Whether an answer is from before an operation."""
    return not operation.finished or (operation.revision or 0) > answer.revision


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
