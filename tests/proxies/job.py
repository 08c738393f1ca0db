"""What clients do through a proxy: a check for each thing that proxies are known to break."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import board_server

from stream import Stream

HOST = "board.example.org"
# The address of the client, which the server's log must name instead of the proxy's.
CLIENT = "127.0.0.2"
SESSION = "/v1/sessions/proxied"
UPLOAD_BYTES = 20_000_000
# An event that a proxy holds back waits for the next one, or for the line that the server sends after 15 s of silence.
HELD_S_MIN = 8
# What comes does so in an instant; the machine may be busy.
RESUME_S_MAX = 60
SILENCE_S = 70


class Broken(Exception):
    """What a client sees go wrong."""


@dataclass
class Board:
    """A way to the server: its own address, or the proxy's."""

    address: tuple[str, int]
    timeout_s: float = 90

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> board_server.Answer:
        """Sends one request on a connection of its own."""
        connection = http.client.HTTPConnection(*self.address, timeout=self.timeout_s, source_address=(CLIENT, 0))
        content = body if isinstance(body, (bytes, Iterator, type(None))) else json.dumps(body).encode()
        base = {"Host": HOST, "Accept-Encoding": "gzip"} | ({"Content-Type": "application/json"} if content else {})
        try:
            connection.request(method, path, content, base | (headers or {}))
            answer = board_server.Answer(connection.getresponse())
        except (OSError, http.client.HTTPException) as error:
            raise Broken(f"{type(error).__name__}: {error}".strip(": ")) from error
        finally:
            connection.close()
        if answer.headers["Content-Encoding"] == "gzip":
            answer.body = gzip.decompress(answer.body)
        return answer

    def stream(self, after: int) -> Stream:
        headers = {"Host": HOST, "Last-Event-ID": str(after)}
        return Stream(self.address, f"{SESSION}/events", headers, self.timeout_s)


@dataclass
class Scene:
    """A server, a proxy in front of it, and how long the checks may take."""

    server: board_server.Server
    proxied: Board
    is_long: bool

    @property
    def direct(self) -> Board:
        return Board(self.server.address)


def expect(answer: board_server.Answer, *statuses: int) -> board_server.Answer:
    if answer.status not in statuses:
        text = answer.body[:80].decode(errors="replace").split("\n")[0] if answer.body[:1] == b"{" else ""
        raise Broken(f"{answer.status}{' ' if text else ''}{answer.code() or text}")
    return answer


def _text(size: int) -> dict[str, str]:
    """A value of about so many bytes, no two the same."""
    return {"text": base64.b64encode(os.urandom(size * 3 // 4)).decode()}


def tag_change(scene: Scene, path: str) -> str:
    """What the proxy does to the header ETag."""
    sent = scene.direct.ask("GET", path).headers["ETag"]
    read = scene.proxied.ask("GET", path).headers["ETag"]
    if read is None:
        return "dropped"
    if read == sent:
        return "kept"
    return "weak" if read == f"W/{sent}" else read.replace(sent.strip('"'), "…")


def tags(scene: Scene) -> str:
    """Writes on condition of the tag that was read: of a value that the server compresses, and of a smaller one."""
    changes = []
    for path, size in ((f"{SESSION}/state/small", 12), (f"{SESSION}/state/large", 4000)):
        expect(scene.proxied.ask("PUT", path, _text(size)), 201)
        read = expect(scene.proxied.ask("GET", path), 200)
        changes.append(tag_change(scene, path))
        tag = read.headers["Blackboard-ETag"]
        if tag is None:
            raise Broken(f"no Blackboard-ETag; ETag {', '.join(changes)}")
        expect(scene.proxied.ask("GET", path, headers={"If-None-Match": tag}), 304)
        expect(scene.proxied.ask("PUT", path, _text(size), {"If-Match": tag}), 200)
        expect(scene.proxied.ask("PUT", path, _text(size), {"If-Match": tag}), 412)
    return ", ".join(dict.fromkeys(changes))


def plain_tags(scene: Scene) -> str:
    """Writes on condition of the plain ETag: what a client does that knows no other header."""
    path = f"{SESSION}/state/plain"
    faults = []
    for size in (12, 4000):
        expect(scene.proxied.ask("PUT", path, _text(size)), 200, 201)
        tag = expect(scene.proxied.ask("GET", path), 200).headers["ETag"]
        change = tag_change(scene, path)
        if tag is None:
            faults.append("dropped")
            continue
        again = scene.proxied.ask("GET", path, headers={"If-None-Match": tag})
        write = scene.proxied.ask("PUT", path, _text(size), {"If-Match": tag})
        if again.status != 304 or write.status != 200:
            faults.append(f"{change}: read {again.status}, write {write.status}")
    if faults:
        raise Broken("; ".join(dict.fromkeys(faults)))
    return "ok"


def wait(scene: Scene) -> str:
    """A wait of 60 s, answered after 3 s, or not at all in the long form."""
    path = f"{SESSION}/state/awaited"
    tag = expect(scene.direct.ask("PUT", path, 1), 201).headers["ETag"]
    writer = threading.Timer(3, lambda: scene.direct.ask("PUT", path, 2))
    if not scene.is_long:
        writer.start()
    begin = time.monotonic()
    try:
        answer = scene.proxied.ask("GET", f"{path}?wait=60s", headers={"If-None-Match": tag})
    except Broken as error:
        raise Broken(f"{error} after {time.monotonic() - begin:.0f} s") from error
    took = time.monotonic() - begin
    if answer.status != (304 if scene.is_long else 200):
        raise Broken(f"{answer.status} {answer.code() or ''} after {took:.0f} s".replace("  ", " "))
    if not scene.is_long and answer.json() != 2:
        raise Broken("an old value")
    return f"{took:.0f} s"


def events(scene: Scene) -> str:
    """Each event arrives as soon as it does without the proxy, the last one too."""
    after = int(expect(scene.direct.ask("GET", SESSION), 200).headers["Blackboard-Revision"])
    with scene.direct.stream(after) as direct, scene.proxied.stream(after) as proxied:
        if not direct.wait_begun(RESUME_S_MAX):
            raise Broken("the server itself sends nothing")
        proxied.wait_begun(5)
        for step in range(3):
            expect(scene.direct.ask("POST", f"{SESSION}/trajectories", {"step": step}), 201)
            time.sleep(0.2)
        if not direct.wait(3, RESUME_S_MAX):
            raise Broken("the server itself sends too few events")
        if not proxied.wait(3, 20):
            raise Broken(f"{len(proxied.named())} of 3 events {proxied.fault or 'after 20 s'}")
        delays = [seen.at - sent.at for seen, sent in zip(proxied.named(), direct.named(), strict=True)]
        if max(delays) >= HELD_S_MIN:
            raise Broken("late by " + ", ".join(f"{delay:.1f}" for delay in delays) + " s")
        if scene.is_long:
            silence(scene, direct, proxied)
    return f"+{max(0, *delays) * 1000:.0f} ms"


def silence(scene: Scene, direct: Stream, proxied: Stream) -> None:
    """The same streams go on after a minute in which nothing is written."""
    begin = time.monotonic()
    if proxied.wait_end(SILENCE_S):
        raise Broken(f"cut {proxied.ended_at - begin:.0f} s after the last event {proxied.fault}".strip())
    expect(scene.direct.ask("POST", f"{SESSION}/trajectories", {"step": 4}), 201)
    if not (direct.wait(4, HELD_S_MIN) and proxied.wait(4, HELD_S_MIN)):
        raise Broken("nothing after a minute of silence")


def resume(scene: Scene) -> str:
    """A restart of the server behind the proxy: a client that connects again misses nothing and sees nothing twice."""
    after = int(expect(scene.direct.ask("GET", SESSION), 200).headers["Blackboard-Revision"])
    expect(scene.direct.ask("POST", f"{SESSION}/trajectories", {"step": "before"}), 201)
    with scene.proxied.stream(after) as stream:
        if not stream.wait(1, RESUME_S_MAX):
            raise Broken(f"no event before the restart {stream.fault}".strip())
        scene.server.stop()
        if not stream.wait_end(RESUME_S_MAX):
            raise Broken("the stream does not end with the server")
    seen = [event.revision for event in stream.named()]
    # A client that tries at once meets a server that is not there yet.
    with scene.proxied.stream(seen[-1]) as early:
        early.wait_end(5)
    scene.server.start()
    begin = time.monotonic()
    expect(scene.direct.ask("POST", f"{SESSION}/trajectories", {"step": "after"}), 201)
    fault = ""
    while time.monotonic() - begin < RESUME_S_MAX:
        with scene.proxied.stream(seen[-1]) as again:
            if again.wait(1, HELD_S_MIN):
                seen += [event.revision for event in again.named()]
                break
            fault = again.fault
        time.sleep(0.25)
    if seen != [after + 1, after + 2]:
        raise Broken(f"revisions {seen} of {after + 1}, {after + 2}; {fault} for {time.monotonic() - begin:.0f} s")
    return f"{time.monotonic() - begin:.1f} s"


def upload(scene: Scene) -> str:
    """A blob of 20 MB: larger than any proxy's buffers, smaller than the server's limit."""
    content = base64.b64encode(os.urandom(UPLOAD_BYTES * 3 // 4))
    begin = time.monotonic()
    answer = expect(scene.proxied.ask("POST", f"{SESSION}/blobs", content, {"Content-Type": "text/plain"}), 201)
    took = time.monotonic() - begin
    path = f"{SESSION}/blobs/{answer.json()['sha256']}"
    part = scene.proxied.ask("GET", path, headers={"Range": "bytes=1000000-1099999"})
    encoding = part.headers["Content-Encoding"] or "plain"
    if part.status != 206 or encoding != "plain" or part.body != content[1_000_000:1_100_000]:
        raise Broken(f"a range of it: {part.status}, {len(part.body)} bytes, {encoding}")
    if scene.is_long:
        slow_upload(scene)
    return f"{took:.1f} s"


def slow_upload(scene: Scene) -> None:
    """An upload over a slow line, of which a part arrives each second for more than a minute."""

    def parts() -> Iterator[bytes]:
        for _ in range(SILENCE_S):
            yield os.urandom(20_000)
            time.sleep(1)

    begin = time.monotonic()
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(SILENCE_S * 20_000)}
    try:
        expect(scene.proxied.ask("POST", f"{SESSION}/blobs", parts(), headers), 201)
    except Broken as broken:
        raise Broken(f"a slow one: {broken} after {time.monotonic() - begin:.0f} s") from broken


def encoded_path(scene: Scene) -> str:
    """A path whose `/` is encoded, as clients do that encode a whole path of the state as one name."""
    expect(scene.direct.ask("PUT", f"{SESSION}/state/devices/linux", "ready"), 201)
    answer = expect(scene.proxied.ask("GET", f"{SESSION}/state/devices%2Flinux"), 200)
    if answer.json() != "ready":
        raise Broken(f"another value: {answer.body[:40]!r}")
    return "ok"


def _call(board: Board, number: int, method: str, params: dict[str, object]) -> dict[str, object]:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    answer = expect(board.ask("POST", "/mcp?session=proxied&agent=Proxied", message, headers), 200)
    body = answer.body
    if "event-stream" in answer.headers["Content-Type"]:
        body = next(line[5:] for line in body.splitlines() if line.startswith(b"data:") and b'"id"' in line)
    return json.loads(body)["result"]


def mcp(scene: Scene) -> str:
    """A host of MCP: it connects, lists the tools and calls one."""
    info = {"name": "proxied", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    _call(scene.proxied, 1, "initialize", params)
    tools = _call(scene.proxied, 2, "tools/list", {})["tools"]
    called = _call(scene.proxied, 3, "tools/call", {"name": "set_state", "arguments": {"path": "mcp", "value": 1}})
    if called.get("isError"):
        raise Broken(f"the call failed: {called['content']}")
    return f"{len(tools)} tools"


def page(scene: Scene) -> str:
    """A log-in on the page, whose origin must equal Host; the server requires tokens from then on."""
    token = scene.server.run("token", "create", "--name", "person", "--scopes", "admin").stdout.split()[-1]
    headers = {"Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-origin"}
    expect(scene.proxied.ask("POST", "/ui/session", {"token": token}, headers), 200, 201, 204)
    return "ok"


def client_address(scene: Scene) -> str:
    """The log of a server that trusts the proxy names the client."""
    answer = expect(scene.proxied.ask("GET", f"{SESSION}/state"), 200)
    wanted = answer.headers["X-Request-ID"]
    limit = time.monotonic() + RESUME_S_MAX
    while time.monotonic() < limit:
        for line in list(scene.server.said):
            if f'"request_id":"{wanted}"' in line:
                logged = json.loads(line)["client"]
                if logged != CLIENT:
                    raise Broken(f"{logged}")
                return "ok"
        time.sleep(0.1)
    raise Broken("no line in the log")


CHECKS: dict[str, Callable[[Scene], str]] = {
    "tags": tags,
    "plain ETag": plain_tags,
    "wait": wait,
    "events": events,
    "restart": resume,
    "20 MB": upload,
    "%2F": encoded_path,
    "MCP": mcp,
    "client": client_address,
    "page": page,
}
