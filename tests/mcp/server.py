"""Server under test, its boards over plain HTTP, and the protocol without a client library."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import struct
import subprocess
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

REPOSITORY = Path(__file__).parents[2]
START_S_MAX = 60
# Waits in tests are ended by events. This is when a test gives up.
GIVE_UP_S = 60.0

RECENT = "2026-07-28"
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
ELICITATION = {"elicitation": {"form": {}}}
ACCEPT = "application/json, text/event-stream"


class Server:
    """A server process with a data directory of its own."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.data = directory / "data"
        self._log = directory / "server.log"
        self.admin = ""
        self.binary = Path(os.environ.get("BLACKBOARD_BIN") or REPOSITORY / "target" / "debug" / "blackboard")
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("BLACKBOARD_")}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [self.binary, "serve", "--listen", "127.0.0.1:0", "--data", self.data, "--log", "info", *options],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self._environment,
            )
        deadline = time.monotonic() + START_S_MAX
        while not (found := self._listening()):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(self.log()[-2000:])
            time.sleep(0.02)
        self.url = found
        self.port = int(found.rpartition(":")[2])

    def _listening(self) -> str:
        for line in self.log().splitlines(keepends=True):
            if '"message":"listening"' in line and line.endswith("\n"):
                return str(json.loads(line)["url"])
        return ""

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def faults(self) -> list[str]:
        """The lines of the log that no client may cause."""
        return [line for line in self.log().splitlines() if "panicked" in line or '"level":"ERROR"' in line]

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends it, if it runs."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)

    def token(self, name: str, *options: str) -> str:
        """A new token."""
        return self._tokens("create", "--name", name, *options).split()[-1]

    def revoke(self, name: str) -> None:
        self._tokens("revoke", name)

    def _tokens(self, *arguments: Any) -> str:
        command = [self.binary, "token", *arguments, "--data", self.data]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=self._environment)
        return done.stdout

    def board(self, session: str, token: str | None = None) -> Board:
        return Board(self.url, session, token)

    @asynccontextmanager
    async def raw(self, token: str | None = None, query: str = "", **headers: str) -> AsyncIterator[Raw]:
        async with httpx.AsyncClient(base_url=self.url, timeout=GIVE_UP_S, headers=_authorized(token)) as client:
            yield Raw(client, "/mcp" + query, headers)

    async def watchers(self, count: int) -> None:
        """Returns once there are this many waits. All waiting workers of a session are one."""
        await self._gauge("watchers", count)

    async def in_progress(self, count: int) -> None:
        """Returns once this many calls have no answer yet."""
        await self._gauge("http_requests_in_progress", count + 1)

    async def _gauge(self, name: str, value: int) -> None:
        begins = f"blackboard_{name} "
        async with httpx.AsyncClient(base_url=self.url, headers=_authorized(self.admin or None)) as client:
            async with asyncio.timeout(GIVE_UP_S):
                while True:
                    metrics = (await client.get("/metrics")).text
                    line = next(line for line in metrics.splitlines() if line.startswith(begins))
                    if float(line.removeprefix(begins)) == value:
                        return
                    await asyncio.sleep(0.02)


def _authorized(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


class Board:
    """A session over plain HTTP."""

    def __init__(self, url: str, session: str, token: str | None) -> None:
        self.session = session
        self._url = url
        self._headers = _authorized(token)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        content = body if isinstance(body, str | bytes | None) else json.dumps(body, ensure_ascii=False)
        sent = {**self._headers, **({} if content is None else {"Content-Type": "application/json"}), **headers}
        url = f"{self._url}/v1/sessions/{quote(self.session, safe='')}{path}"
        return httpx.request(method, url, content=content, headers=sent, timeout=GIVE_UP_S).raise_for_status()

    def post(self, log: str, *items: Any) -> int:
        """The seq of the first new entry."""
        return int(self.ask("POST", f"/{log}", list(items)).json()["entries"][0]["seq"])

    def answer(self, seq: int, answer: str) -> None:
        self.ask("PUT", f"/questions/{seq}/answer", {"answer": answer})

    def entries(self, log: str) -> list[dict[str, Any]]:
        return list(self.ask("GET", f"/{log}").json()["entries"])

    def state(self, path: str) -> Any:
        return self.ask("GET", f"/state/{path}").json()

    def revision(self) -> int:
        return int(self.ask("GET", "").json()["revision"])

    async def indexed(self, words: str) -> None:
        """Returns once a search finds the words: the index follows the writes."""
        async with httpx.AsyncClient(headers=self._headers) as client, asyncio.timeout(GIVE_UP_S):
            while True:
                found = await client.get(f"{self._url}/v1/search", params={"q": words})
                if found.json()["hits"]:
                    return
                await asyncio.sleep(0.02)

    def fill(self) -> Board:
        """Writes what the tools' examples speak of."""
        for number in range(1, 5):
            self.post("questions", {"question": f"question {number}?"})
        for number in range(1, 8):
            self.post("requests", {"request": f"work {number}", "kind": "sum"})
        for number in range(1, 7):
            self.post("trajectories", {"step": number, "text": "disk full" if number == 3 else "step"})
        for number in range(1, 4):
            self.post("screenshots", {"metadata": f"page {number}", "image_path": "", "image_str": png_url(number)})
        for agent in ("W", "Worker"):
            self.post(f"agents/{agent}/messages", "first", "second", "third")
        self.ask("PUT", "/state", {"tasks": {"t1": {"status": "new"}}, "done": 0})
        return self


class Raw:
    """The protocol over a plain HTTP client."""

    def __init__(self, client: httpx.AsyncClient, path: str, headers: dict[str, str]) -> None:
        self.client = client
        self.path = path
        self._headers = headers

    def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        capabilities: dict[str, Any] | None = None,
        generation: str = RECENT,
    ) -> httpx.Request:
        """A request of a generation, with the headers that go with its body."""
        params = dict(params or {})
        headers = {"Accept": ACCEPT, "MCP-Protocol-Version": generation, **self._headers}
        if generation == RECENT:
            headers["Mcp-Method"] = method
            name = next((params[key] for key in ("name", "uri", "taskId") if key in params), None)
            if name is not None:
                headers["Mcp-Name"] = str(name)
            params["_meta"] = {
                **params.get("_meta", {}),
                "io.modelcontextprotocol/protocolVersion": generation,
                "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": capabilities or {},
            }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.client.build_request("POST", self.path, json=message, headers=headers)

    async def ask(self, method: str, params: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """The message that answers a request: it has a `result` or an `error`."""
        answer = await self.client.send(self.request(method, params, **options))
        return messages(answer)[-1]

    async def call(self, tool: str, arguments: Any = None, **options: Any) -> dict[str, Any]:
        """The result of a tool."""
        return (await self.ask("tools/call", {"name": tool, "arguments": arguments or {}}, **options))["result"]

    async def send(self, body: str | bytes, **headers: str | None) -> httpx.Response:
        """The answer to any bytes. A header that is None is left out."""
        named = {name.replace("_", "-").title(): value for name, value in headers.items()}
        sent = {"Accept": ACCEPT, "Content-Type": "application/json", **self._headers, **named}
        request = self.client.build_request("POST", self.path, content=body)
        request.headers.update({name: value for name, value in sent.items() if value is not None})
        for name in [name for name, value in sent.items() if value is None]:
            request.headers.pop(name, None)
        return await self.client.send(request)


def messages(answer: httpx.Response) -> list[dict[str, Any]]:
    """The messages of an answer, which is JSON or a stream of events."""
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        return [json.loads(line[5:]) for line in answer.text.splitlines() if line.startswith("data:")]
    return [answer.json()]


def facts(result: dict[str, Any]) -> dict[str, Any]:
    """The facts of a tool's result."""
    return facts_of(result["content"][0]["text"])


def facts_of(text: str) -> dict[str, Any]:
    """The facts of a text, with those that stand between its marks."""
    own, marked, rest = text.partition("\n<board-data-")
    return {**json.loads(own), **(json.loads(rest.split("\n")[1]) if marked else {})}


def png(seed: int = 0, side: int = 8) -> bytes:
    """A picture of one colour."""
    raw = (b"\0" + bytes([seed % 256, 80, 160]) * side) * side

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def png_url(seed: int = 0, side: int = 8) -> str:
    return "data:image/png;base64," + base64.b64encode(png(seed, side)).decode()
