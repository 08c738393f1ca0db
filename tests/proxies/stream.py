"""An event stream that is read as it arrives, in a thread: each event with the time of its last byte."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
import zlib
from dataclasses import dataclass

READ_BYTES_MAX = 1 << 16


@dataclass(frozen=True)
class Event:
    """One event, dispatched by its empty line."""

    revision: int
    name: str
    at: float


class Stream:
    """One connection that follows a session; it ends with the block."""

    def __init__(self, address: tuple[str, int], path: str, headers: dict[str, str], timeout_s: float = 90) -> None:
        self.events: list[Event] = []
        self.status: int | None = None
        self.fault = ""
        self.ended_at: float | None = None
        self._changed = threading.Condition()
        self._connection = http.client.HTTPConnection(*address, timeout=timeout_s)
        self._socket: socket.socket | None = None
        self._arguments = (path, {"Accept": "text/event-stream", "Accept-Encoding": "gzip", **headers})
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Stream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            # It may have ended by itself.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def wait(self, count: int, limit_s: float) -> bool:
        """Waits until there are so many events with a name; false at the limit or at the stream's end."""
        with self._changed:
            self._changed.wait_for(lambda: len(self.named()) >= count or self.ended_at is not None, limit_s)
            return len(self.named()) >= count

    def wait_begun(self, limit_s: float) -> bool:
        """Waits for the first event, which names the revision where the stream begins."""
        with self._changed:
            self._changed.wait_for(lambda: self.events or self.ended_at is not None, limit_s)
            return bool(self.events)

    def wait_end(self, limit_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.ended_at is not None, limit_s)

    def named(self) -> list[Event]:
        """The events of commits, without those that only give the revision."""
        return [event for event in self.events if event.name]

    def last_id(self) -> int:
        return self.events[-1].revision if self.events else 0

    def _run(self) -> None:
        path, headers = self._arguments
        try:
            self._connection.connect()
            self._socket = self._connection.sock
            self._connection.request("GET", path, headers=headers)
            self._read(self._connection.getresponse())
        except (OSError, http.client.HTTPException, zlib.error) as error:
            self.fault = f"{type(error).__name__} {error}".strip()
        finally:
            self._connection.close()
            with self._changed:
                self.ended_at = time.monotonic()
                self._changed.notify_all()

    def _read(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        if answer.status != 200:
            self.fault = str(answer.status)
            return
        is_gzip = answer.headers.get("Content-Encoding") == "gzip"
        unpacked = zlib.decompressobj(wbits=31) if is_gzip else None
        pending = b""
        while read := answer.read1(READ_BYTES_MAX):
            pending += unpacked.decompress(read) if unpacked else read
            *whole, pending = pending.split(b"\n\n")
            with self._changed:
                self.events += [_event(text.decode(), time.monotonic()) for text in whole if b"id:" in text]
                self._changed.notify_all()


def _event(text: str, at: float) -> Event:
    fields = dict(line.split(":", 1) for line in text.split("\n") if ":" in line)
    return Event(int(fields["id"]), fields.get("event", "").strip(), at)
