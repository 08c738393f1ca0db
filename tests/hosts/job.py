"""The job that a scripted model plays on a board, step by step, and the player of it."""

from __future__ import annotations

import base64
import contextlib
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from string import Template
from typing import TYPE_CHECKING

import board_server

from conversation import Call, Conversation, Result

if TYPE_CHECKING:
    from host import Host
    from stage import Stage

PROMPT = "Work on the board of the MCP server blackboard, with its tools."
NUMBERS = '{"count":12345678901234567890,"price":1.10}'
ENTRIES, ENTRY_WORDS = 120, 60
TRIES_MAX, SEARCHES_MAX = 4, 3
PIXELS = 64
PERSON_S = 3.0
INTERRUPT_S = 4.0


@dataclass
class Step:
    """One call. `$name` in the arguments is what an earlier step learned; `expect` is a pattern of a good result."""

    name: str
    tool: str
    arguments: str = "{}"
    learns: tuple[str, ...] = ()
    expect: str = ""
    before: Callable[[Stage], None] | None = None


@dataclass
class Done:
    """A step as it went: every try with what the model saw of it."""

    step: Step
    arguments: str
    call: Call
    result: Result
    seconds: float


def fill(stage: Stage) -> None:
    """The board before the job: a request, a long log, a picture, exact numbers."""
    stage.ask("POST", "/requests", f'{{"task":"Sum up the report","numbers":{NUMBERS}}}')
    words = " ".join(["lorem"] * ENTRY_WORDS)
    stage.ask("POST", "/trajectories", [{"step": n, "text": f"[{n:04}] {words} end"} for n in range(ENTRIES)])
    noise = board_server.picture(PIXELS, PIXELS, bytes(n * n % 251 for n in range(PIXELS * PIXELS * 3)))
    url = "data:image/png;base64," + base64.b64encode(noise).decode()
    stage.ask("POST", "/screenshots", {"metadata": "a page", "image_path": "", "image_str": url})
    stage.ask("PUT", "/state/numbers", NUMBERS)


def dot() -> str:
    """A small picture, as a model would send it."""
    png = board_server.picture(2, 2, bytes(range(12)))
    return "data:image/png;base64," + base64.b64encode(png).decode()


def restart(stage: Stage) -> None:
    """The server goes and comes back with the same data at the same address."""
    stage.restart()


def interrupt(stage: Stage) -> None:
    """The server is killed while a call is under way, and comes back."""
    threading.Timer(INTERRUPT_S, stage.crash).start()


def person(stage: Stage) -> None:
    """A person who answers the next question some seconds after it was asked."""
    before = len(stage.ask("GET", "/questions")["entries"])

    def answer() -> None:
        for _ in range(600):
            time.sleep(0.1)
            asked = []
            with contextlib.suppress(OSError):
                asked = stage.ask("GET", "/questions")["entries"]
            if len(asked) > before:
                time.sleep(PERSON_S)
                # Unless the host's own user was faster.
                with contextlib.suppress(RuntimeError):
                    stage.ask("PUT", f"/questions/{asked[-1]['seq']}/answer", {"answer": "blue, says a person"})
                return

    threading.Thread(target=answer, daemon=True).start()


STEPS = [
    Step("overview", "board_overview", expect="claimable_requests"),
    Step("append", "append_items", '{"log":"trajectories","items":[{"step":121,"text":"began"}]}', expect="appended"),
    Step("short_reading", "read_log", '{"log":"trajectories","latest":2}', expect="began"),
    Step("claim", "claim_request", '{"wait_s":0,"ttl":"10m"}', ("seq", "fence"), "fence"),
    Step("wrong_fence", "finish_request", '{"seq":$seq,"fence":1,"result":"none"}', expect="stale-fence"),
    Step("read_numbers", "get_state", '{"path":"numbers"}', expect="count"),
    Step("write_numbers", "set_state", f'{{"path":"written","value":{NUMBERS}}}', ("tag",), "tag"),
    Step("add_screenshot", "add_screenshot", f'{{"image":"{dot()}","metadata":"a dot"}}', expect="seq"),
    Step("get_screenshot", "get_screenshot", '{"seq":1}'),
    Step("default_reading", "read_log", '{"log":"trajectories"}', expect="lorem"),
    Step("long_reading", "read_log", '{"log":"trajectories","latest":200,"max_tokens":100000}', expect="lorem"),
    Step("after_restart", "get_state", '{"path":"numbers"}', (), "count", restart),
    Step("wait", "wait_for_change", '{"on":["state/never"],"wait_s":45}', expect="not yet"),
    Step(
        "person",
        "ask_person",
        '{"question":"Which colour?","wait_s":40}',
        (),
        "says a person|in the background|to the background",
        person,
    ),
    Step("person_here", "ask_person", '{"question":"Which size?","ask_here":true,"wait_s":40}', before=person),
    Step("interrupted", "wait_for_change", '{"on":["state/never"],"wait_s":20}', before=interrupt),
    Step("finish", "finish_request", '{"seq":$seq,"fence":$fence,"result":"three pages"}', expect="done"),
]


@dataclass
class Player:
    """Decides what the model says next. One host's whole run."""

    host: Host
    stage: Stage
    steps: list[Step] = field(default_factory=lambda: list(STEPS))
    done: list[Done] = field(default_factory=list)
    searches: list[Done] = field(default_factory=list)
    requests: list[Conversation] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    at: int = 0
    tries: int = 0
    asked: int = 0
    pending: Call | None = None
    length: int = 0
    arguments: str = ""
    since: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, seen: Conversation) -> Call | str:
        """The next call, or a text: at the end, or to a request that is not of the job."""
        with self.lock:
            if not self.host.main(seen):
                return "ok"
            if not self.requests:
                time.sleep(self.host.think_s)
            self.requests.append(seen)
            if self.pending:
                result = seen.result(self.pending)
                if result is None:
                    # The same request once more, or a conversation beside the job.
                    return self.pending if len(seen.calls) == self.length else "ok"
                self.take(self.pending, result)
            self.pending, self.length = self.next(seen), len(seen.calls)
            self.stage.up.wait()
            self.since = time.monotonic()
            return self.pending or "The work is done."

    def take(self, call: Call, result: Result) -> None:
        """Notes a result, and goes on where it is good or was tried often enough."""
        went = Done(self.steps[self.at], self.arguments, call, result, time.monotonic() - self.since)
        if call.search:
            self.searches.append(went)
            return
        self.done.append(went)
        self.tries += 1
        text = result.text()
        if not re.search(went.step.expect, text) and self.tries < TRIES_MAX:
            return
        for name in went.step.learns:
            # In text, in structured content, and in JSON within a string the quotes differ.
            found = re.search(rf'\b{name}[\\"]*\s*:\s*[\\"]*([\w.]+)', text)
            self.known[name] = found[1] if found else "0"
        self.forward()

    def forward(self) -> None:
        self.at, self.tries, self.asked = self.at + 1, 0, 0

    def next(self, seen: Conversation) -> Call | None:
        """The call of the present step: to its tool, or to the host's search for it."""
        while self.at < len(self.steps):
            step = self.steps[self.at]
            self.arguments = Template(step.arguments).safe_substitute(self.known)
            call = self.host.call(step.tool, self.arguments, seen)
            if call and not (call.search and self.asked >= SEARCHES_MAX):
                if call.search:
                    self.asked += 1
                elif step.before and self.tries == 0:
                    step.before(self.stage)
                call.id = f"call_{len(self.done) + len(self.searches) + 1}"
                return call
            self.missing.append(step.name)
            self.forward()
        return None


def written(stage: Stage) -> str:
    """The numbers that the host's model wrote, as they stand on the board."""
    try:
        return stage.text("GET", "/state/written")
    except RuntimeError:
        return "nothing"
