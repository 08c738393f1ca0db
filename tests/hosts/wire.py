"""What goes between a host and the server: bytes passed on and kept, and read as HTTP afterwards."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

# What a host accepts is not passed on, so that answers can be read.
COMPRESSION = re.compile(rb"\r\naccept-encoding: ", re.IGNORECASE)


@dataclass
class Connection:
    """One connection of the host: both directions."""

    sent: bytearray = field(default_factory=bytearray)
    received: bytearray = field(default_factory=bytearray)


@dataclass
class Exchange:
    """One message of the host with the server's answer."""

    message: dict[str, Any]
    headers: dict[str, str]
    status: int
    answer: dict[str, Any]

    def method(self) -> str:
        return str(self.message.get("method", ""))


class Wire:
    """A port that stays, before a server whose port changes."""

    def __init__(self, target: Callable[[], tuple[str, int] | None]) -> None:
        self.target = target
        self.connections: list[Connection] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            try:
                server = socket.create_connection(self.target() or ("127.0.0.1", 1))
            except OSError:
                client.close()
                continue
            kept = Connection()
            self.connections.append(kept)
            for source, sink, bytes_ in ((client, server, kept.sent), (server, client, kept.received)):
                threading.Thread(target=self._pass, args=(source, sink, bytes_), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, kept: bytearray) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                data = COMPRESSION.sub(b"\r\nx-no-encoding: ", data)
                kept.extend(data)
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def exchanges(self) -> list[Exchange]:
        """All messages, connection by connection, as far as they can be read."""
        found = []
        for connection in self.connections:
            answers = _answers(bytes(connection.received))
            for headers, body in _requests(bytes(connection.sent)):
                status, text = next(answers, (0, ""))
                with contextlib.suppress(ValueError):
                    message = json.loads(body)
                    for one in message if isinstance(message, list) else [message]:
                        found.append(Exchange(one, headers, status, _answer(text, one.get("id"))))
        return found


def _answer(text: str, number: Any) -> dict[str, Any]:
    """The response in a body, which is JSON or an event stream."""
    lines = [line[5:] for line in text.splitlines() if line.startswith("data:")] or [text]
    for line in lines:
        with contextlib.suppress(ValueError):
            message = json.loads(line)
            if isinstance(message, dict) and message.get("id") == number:
                return message
    return {}


def _requests(data: bytes) -> Iterator[tuple[dict[str, str], str]]:
    """Requests with a body in a stream of bytes."""
    while b"\r\n\r\n" in data:
        head, _, data = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        headers[":method"] = lines[0].split(" ")[0]
        if "chunked" in headers.get("transfer-encoding", ""):
            body = b""
            while data:
                size, _, data = data.partition(b"\r\n")
                length = int(size or b"0", 16)
                body, data = body + data[:length], data[length + 2 :]
                if not length:
                    break
        else:
            length = int(headers.get("content-length", 0))
            body, data = data[:length], data[length:]
        yield headers, body.decode(errors="replace")


class _Bytes:
    """As much of a socket as `HTTPResponse` needs."""

    def __init__(self, data: io.BytesIO) -> None:
        self.data = data

    def makefile(self, *_: Any) -> io.BytesIO:
        return self.data


def _answers(data: bytes) -> Iterator[tuple[int, str]]:
    """Responses in a stream of bytes; one that was cut ends it."""
    at = 0
    while at < len(data):
        stream = io.BytesIO(data[at:])
        stream.close = lambda: None  # type: ignore[method-assign]
        answer = http.client.HTTPResponse(_Bytes(stream), method="POST")  # type: ignore[arg-type]
        try:
            answer.begin()
            body = answer.read()
        except (http.client.HTTPException, OSError, ValueError):
            return
        at += stream.tell()
        yield answer.status, body.decode(errors="replace")


def masked(text: str) -> str:
    """A text without what differs from run to run."""
    text = re.sub(r"as task \w+", "as task ID", re.sub(r"\d+\.\d+ seconds", "N seconds", text))
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
