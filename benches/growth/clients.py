"""Load clients in one process: a closed loop over some connections, and watchers of a session's events."""

import re
import select
import socket
import time
from collections.abc import Iterable, Iterator

from load import Failed

ANSWER_SECONDS_MAX = 600
RECEIVED_BYTES = 1 << 18
HEAD_END = b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
# So many connections are opened before their answers are read: the backlog of a listener is short.
OPENED_AT_ONCE = 64


def request(method: str, path: str, body: bytes = b"", kind: str = "application/json") -> bytes:
    """A request as it goes over the wire."""
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n"
    if body or method not in ("GET", "DELETE"):
        head += f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n"
    return f"{head}\r\n".encode() + body


def missing_bytes(answer: bytes | bytearray) -> bool:
    """Whether an answer is not there in whole."""
    head = answer.find(HEAD_END)
    if head < 0:
        return True
    length = LENGTH.search(answer, 0, head)
    if length is None:
        raise Failed(f"an answer without a length: {bytes(answer[:300])!r}")
    return len(answer) < head + len(HEAD_END) + int(length[1])


def status(answer: bytes | bytearray) -> int:
    return int(answer[9:12])


def connected(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS_MAX)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def received(client: socket.socket) -> bytes:
    """One whole answer."""
    answer = bytearray()
    while missing_bytes(answer):
        part = client.recv(RECEIVED_BYTES)
        if not part:
            raise Failed(f"the connection ended within an answer: {bytes(answer[:300])!r}")
        answer += part
    return bytes(answer)


def ask(port: int, sent: bytes, wanted: Iterable[int] = (200, 201)) -> bytes:
    """One request on a connection of its own; the body of its answer."""
    with connected(port) as client:
        client.sendall(sent)
        answer = received(client)
    if status(answer) not in wanted:
        raise Failed(f"{sent[:120]!r}: {answer[:600]!r}")
    return answer.partition(HEAD_END)[2]


class Clients:
    """Connections that each send the next request once their last one was answered."""

    def __init__(self, port: int, count: int):
        self.poll, self.sockets = select.epoll(), {}
        for begin in range(0, count, OPENED_AT_ONCE):
            for _ in range(begin, min(begin + OPENED_AT_ONCE, count)):
                self._add(connected(port))

    def _add(self, client: socket.socket):
        self.sockets[client.fileno()] = client
        self.poll.register(client, select.EPOLLIN)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.sockets.values():
            client.close()
        self.poll.close()

    def run(self, requests: Iterable[bytes], wanted: int) -> list[float]:
        """Sends all of them; the seconds that each took. Any other status than `wanted` ends the measurement."""
        rest, begun, parts, times = iter(requests), {}, {}, []
        expected = str(wanted).encode()
        for number in self.sockets:
            if not self._send(number, rest, begun):
                break
        while begun:
            for number, _ in self.poll.poll(ANSWER_SECONDS_MAX):
                answer = self.sockets[number].recv(RECEIVED_BYTES)
                now = time.perf_counter()
                if not answer:
                    raise Failed("the server closed a connection")
                if number in parts:
                    parts[number] += answer
                    answer = parts[number]
                if missing_bytes(answer):
                    parts.setdefault(number, bytearray(answer))
                    continue
                if answer[9:12] != expected:
                    raise Failed(f"expected {wanted}: {bytes(answer[:600])!r}")
                parts.pop(number, None)
                times.append(now - begun.pop(number))
                self._send(number, rest, begun)
        return times

    def _send(self, number: int, rest: Iterator[bytes], begun: dict[int, float]) -> bool:
        sent = next(rest, None)
        if sent is None:
            return False
        begun[number] = time.perf_counter()
        self.sockets[number].sendall(sent)
        return True


class Watchers(Clients):
    """Streams of a session's events."""

    def __init__(self, port: int, path: str, count: int):
        super().__init__(port, count)
        sent = request("GET", path)
        clients = list(self.sockets.values())
        for begin in range(0, count, OPENED_AT_ONCE):
            some = clients[begin : begin + OPENED_AT_ONCE]
            for client in some:
                client.sendall(sent)
            for client in some:
                head = bytearray()
                while HEAD_END not in head:
                    head += client.recv(RECEIVED_BYTES)
                if status(head) != 200:
                    raise Failed(f"a stream is answered {bytes(head[:600])!r}")

    def until(self, revision: int) -> float:
        """Waits until each of them has the event of that revision; the moment when the last one had it."""
        mark, behind, parts = b"id: %d\n" % revision, set(self.sockets), {}
        while behind:
            found = self.poll.poll(ANSWER_SECONDS_MAX, len(self.sockets))
            if not found:
                raise Failed(f"{len(behind)} of {len(self.sockets)} watchers did not get revision {revision}")
            for number, _ in found:
                text = self.sockets[number].recv(RECEIVED_BYTES)
                if not text:
                    raise Failed("a stream of events ended")
                text = parts.get(number, b"") + text
                if mark in text and number in behind:
                    behind.remove(number)
                parts[number] = text[-len(mark) :]
        return time.perf_counter()
