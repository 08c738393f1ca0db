"""Failing networks: proxies that cut connections and answers, and a server with scripted answers."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Callable
from urllib.parse import urlsplit

ANSWER_SECONDS_MAX = 30.0
"""The time that a proxy gives an answer, unless a test gives less."""


class Listener:
    """A listener on a free port of loopback, with a thread for each connection."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            self.serve(connection)
        self._open.discard(connection)

    def serve(self, connection: socket.socket) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._socket.close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class CuttingProxy(Listener):
    """A proxy that cuts each connection after a random number of bytes, in either direction."""

    def __init__(self, url: str, most: int, seed: int = 1) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname, parts.port)
        self._most = most
        self._random = random.Random(seed)
        self.cuts = 0
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        left = [self._random.randrange(self._most)]
        with socket.create_connection(self._to) as server:
            back = threading.Thread(target=self._copy, args=(server, connection, left), daemon=True)
            back.start()
            self._copy(connection, server, left)
            back.join()

    def _copy(self, source: socket.socket, target: socket.socket, left: list[int]) -> None:
        with contextlib.suppress(OSError):
            while block := source.recv(4096):
                target.sendall(block[: left[0]])
                left[0] -= len(block)
                if left[0] <= 0:
                    self.cuts += 1
                    break
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Gateway(Listener):
    """A reverse proxy that gives the answer to a wait `limit` seconds, and sends `cut` instead of a late one.

    An empty `cut` breaks the connection off. `own` may answer a request itself, by its first line and number. `lost`
    says which answers do not come through. `edit` changes the head of an answer.
    """

    def __init__(
        self,
        url: str,
        *,
        limit: float = ANSWER_SECONDS_MAX,
        cut: bytes = b"",
        own: Callable[[str, int], bytes | None] = lambda _, __: None,
        lost: Callable[[str, bytes], bool] = lambda _, __: False,
        edit: Callable[[bytes], bytes] = lambda head: head,
    ) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname, parts.port)
        self._limit, self._cut = limit, cut
        self._own, self._lost, self._edit = own, lost, edit
        self.seen: list[str] = []
        self.cuts = 0
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        first, head, body = request(connection)
        self.seen.append(first)
        answer = self._own(first, len(self.seen))
        connection.sendall(self._passed(first, head, body) if answer is None else answer)

    def _passed(self, first: str, head: bytes, body: bytes) -> bytes:
        with socket.create_connection(self._to) as server:
            server.sendall(b"\r\n".join([first.encode("latin-1"), head, b"connection: close", b"", body]))
            # Other answers may take longer than that on a slow machine.
            answer = self._received(server, self._limit if "wait=" in first else ANSWER_SECONDS_MAX)
        if answer is None or self._lost(first, answer):
            self.cuts += 1
            return self._cut
        head, _, body = answer.partition(b"\r\n\r\n")
        return self._edit(head) + b"\r\n\r\n" + body

    def _received(self, server: socket.socket, limit: float) -> bytes | None:
        """All that the server sends; None where it takes longer than allowed."""
        blocks, deadline = bytearray(), time.monotonic() + limit
        while (left := deadline - time.monotonic()) > 0:
            server.settimeout(left)
            try:
                block = server.recv(65536)
            except TimeoutError:
                break
            if not block:
                return bytes(blocks)
            blocks += block
        return None


class Scripted(Listener):
    """A server that answers each request by a function of its first line."""

    def __init__(self, answer: Callable[[str], bytes]) -> None:
        self._answer = answer
        self.seen: list[str] = []
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        first, _, _ = request(connection)
        self.seen.append(first)
        connection.sendall(self._answer(first))


def request(connection: socket.socket) -> tuple[str, bytes, bytes]:
    """The first line, the other lines and the body of a request; its connection is not named among the lines."""
    with connection.makefile("rb") as lines:
        first = lines.readline().decode("latin-1").strip()
        head, length = [], 0
        while (line := lines.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            if name.lower() == "content-length":
                length = int(value)
            if name.lower() != "connection":
                head.append(line.strip())
        return first, b"\r\n".join(head), lines.read(length)


def http(status: str, kind: str, body: bytes, length: int | None = None, *headers: str) -> bytes:
    """The bytes of an answer; `length` is what it claims."""
    lines = [
        f"HTTP/1.1 {status}",
        f"content-type: {kind}",
        f"content-length: {len(body) if length is None else length}",
    ]
    return "\r\n".join([*lines, *headers, "connection: close", "", ""]).encode() + body
