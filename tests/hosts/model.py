"""Scripted model: an HTTP server that speaks four wire formats and plays a job, whatever host asks.

Every request body is recorded as it came: it is what the model saw.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
import traceback
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

import formats
from conversation import Call, Conversation
from host import Host


class Failing(Exception):
    """The model answers with a status and a message instead."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    def text(self) -> str:
        """The body, in which each wire format finds its own members."""
        error = {"type": "invalid_request_error", "code": self.status, "message": str(self)}
        return formats.dumps({"type": "error", "error": error | {"status": "INVALID_ARGUMENT"}})


class Player(Protocol):
    """Decides what the model says to a host."""

    host: Host

    def answer(self, seen: Conversation) -> Call | str: ...


class Model:
    """The server, on a free port of loopback, for one player."""

    def __init__(self, player: Player, record: Path) -> None:
        self.player, self.record, self.lock = player, record, threading.Lock()
        record.write_text("")
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                model.note("GET", self.path, "null")
                self.answer(formats.dumps(player.host.models()))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                try:
                    model.post(self, body.decode())
                except Failing as failing:
                    self.answer(failing.text(), status=failing.status)
                except ConnectionError:
                    # The host was ended before its answer.
                    self.close_connection = True
                except Exception:
                    traceback.print_exc(file=sys.stderr)
                    self.answer('{"error":{"message":"the scripted model failed"}}', status=400)

            def answer(self, text: str, kind: str = "application/json", status: int = 200) -> None:
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def note(self, method: str, path: str, body: str) -> None:
        with self.lock, self.record.open("a") as file:
            file.write(f'{{"method":"{method}","path":{json.dumps(path)},"body":{body}}}\n')

    def post(self, handler: Any, text: str) -> None:
        """Answers one request."""
        body = json.loads(text, parse_float=Decimal)
        self.note("POST", handler.path, text if "\n" not in text else formats.dumps(body))
        if handler.path.partition("?")[0].endswith(("count_tokens", "countTokens")):
            return handler.answer('{"input_tokens":10,"totalTokens":10}')
        spoken = formats.chosen(handler.path)
        if spoken is None:
            return handler.answer('{"error":{"message":"unknown path"}}', status=404)
        answer = self.player.answer(spoken.read(body))
        if body.get("stream") or "streamGenerateContent" in handler.path:
            return handler.answer("".join(spoken.stream(answer)), "text/event-stream")
        return handler.answer(spoken.write(answer))
