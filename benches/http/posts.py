"""Writes by plain sockets: a number of clients, each of which waits for its answer before it writes again.

It is slower than wrk, but can write a given number of items, or so many a second, and can speak other protocols than
HTTP (`Client` has what differs). All clients share one thread.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

# A write must be answered within this time, also by a server under valgrind.
ANSWER_SECONDS = 120


class Failed(Exception):
    """A connection ended, or a write was rejected."""


class Client(asyncio.Protocol):
    """A connection that writes and waits. Subclasses send a write and recognize its answer."""

    def __init__(self):
        self.transport = None
        self.received = bytearray()
        self.waiting = None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received += data
        while self.waiting is not None and not self.waiting.done():
            try:
                length = self.answer()
            except Failed as failure:
                self.waiting.set_exception(failure)
                return
            if length == 0:
                return
            del self.received[:length]

    def connection_lost(self, exc):
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_exception(Failed(f"the connection ended: {exc}"))

    async def greet(self):
        """What comes before the first write."""

    async def write(self):
        """Writes an item and returns once that is acknowledged."""
        await self.ask(self.request())

    async def ask(self, request: bytes):
        self.waiting = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        await self.waiting

    def request(self) -> bytes:
        raise NotImplementedError

    def answer(self) -> int:
        """The bytes of `received` that are dealt with, 0 if a part is missing. Ends `waiting` at an acknowledgement."""
        raise NotImplementedError


def http(method: str, path: str, body: bytes) -> Callable[[], Client]:
    """Clients that send this request again and again."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    return lambda: HttpClient(request)


class HttpClient(Client):
    """A client of HTTP/1.1 with one request."""

    def __init__(self, request: bytes):
        super().__init__()
        self.bytes = request

    def request(self) -> bytes:
        return self.bytes

    def answer(self) -> int:
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return 0
        head = bytes(self.received[:end]).lower()
        length = head.find(b"\r\ncontent-length:")
        if length < 0:
            raise Failed(f"an answer without a length: {head[:200]!r}")
        whole = end + 4 + int(head[length + 17 :].partition(b"\r\n")[0])
        if len(self.received) < whole:
            return 0
        if head[9:12] not in (b"200", b"201"):
            raise Failed(f"a write was rejected: {bytes(self.received[:whole])[:400]!r}")
        self.waiting.set_result(None)
        return whole


@dataclass
class Written:
    """What was written, and how long each write took."""

    seconds: float = 0.0
    times: list[float] = field(default_factory=list)

    def percentile_ms(self, part: float) -> float:
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] * 1000


def write(
    port: int,
    clients: int,
    make: Callable[[], Client],
    *,
    number: int | None = None,
    seconds: float | None = None,
    per_second: float | None = None,
) -> Written:
    """Writes `number` items, or for `seconds`; at most `per_second` by all clients together."""
    return asyncio.run(_write(port, clients, make, number, seconds, per_second))


async def _write(port, clients, make, number, seconds, per_second) -> Written:
    loop, written = asyncio.get_running_loop(), Written()
    connected = [await loop.create_connection(make, "127.0.0.1", port) for _ in range(clients)]
    try:
        for _, client in connected:
            await client.greet()
        begun = time.perf_counter()
        end = None if seconds is None else begun + seconds
        turns = iter(range(number)) if number is not None else iter(int, 1)
        # The clients of a given rate begin one after the other, so that their writes are spread evenly.
        gap = None if per_second is None else clients / per_second
        offsets = [0 if gap is None else gap * n / clients for n in range(clients)]
        work = [
            _client(client, turns, written.times, end, None if gap is None else (begun + offset, gap))
            for (_, client), offset in zip(connected, offsets, strict=True)
        ]
        await _all(work, written.times)
        written.seconds = time.perf_counter() - begun
    finally:
        for transport, _ in connected:
            transport.close()
    return written


async def _all(work: list, times: list):
    """Waits for all clients, as long as there are answers. A time-out for each write would cost more than the write."""
    clients = asyncio.gather(*work)
    # If this ends first, nobody looks at what became of them.
    clients.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    while True:
        before = len(times)
        done, _ = await asyncio.wait([clients], timeout=ANSWER_SECONDS)
        if done:
            return clients.result()
        if len(times) == before:
            clients.cancel()
            raise Failed(f"no write was answered within {ANSWER_SECONDS} s")


async def _client(client, turns, times, end, pace):
    due, gap = pace or (None, None)
    for _ in turns:
        if due is not None:
            if end is not None and due >= end:
                return
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            # A write that was late does not make those after it come at once.
            due = max(due + gap, time.perf_counter())
        begun = time.perf_counter()
        if end is not None and begun >= end:
            return
        await client.write()
        times.append(time.perf_counter() - begun)
