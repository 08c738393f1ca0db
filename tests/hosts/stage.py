"""The server with its board, behind a wire, while a host works on it."""

from __future__ import annotations

import json
import threading
from typing import Any

import board_server

from wire import Wire

SESSION = "demo"


class Stage:
    """A running server at an address that outlives restarts."""

    def __init__(self, server: board_server.Server, token: str = "") -> None:
        self.server, self.token = server, token
        # Not set while the server is gone: the model does not answer faster than a server starts.
        self.up = threading.Event()
        self.up.set()
        self.wire = Wire(lambda: self.server.address)

    def text(self, method: str, path: str, body: Any = None) -> str:
        """Asks the session over plain HTTP, beside the wire."""
        client = self.server.client()
        try:
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            answer = client.ask(method, f"/v1/sessions/{SESSION}{path}", body, **headers)
            if answer.status >= 400:
                raise RuntimeError(f"{method} {path}: {answer.status} {answer.body[:300]!r}")
            return str(answer.body.decode())
        finally:
            client.close()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self.text(method, path, body))

    def restart(self) -> None:
        self.server.stop()
        self.server.start()

    def crash(self) -> None:
        self.up.clear()
        self.server.kill()
        self.server.start()
        self.up.set()

    def board(self, agent: str, query: str = "") -> str:
        """The URL that a host is given."""
        return f"http://127.0.0.1:{self.wire.port}/mcp?session={SESSION}&agent={agent}{query}"
