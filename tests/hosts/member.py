"""Members of a team: scripted models that take what waits for them on the board, in whatever order it comes."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import codex
import host as hosts
from conversation import Call, Conversation

# A line of a notice: what waits, with its number.
THING = re.compile(r"^- (?:(message) (\d+) from (\w+)|request (\d+)\b.* can be claimed)", re.MULTILINE)
# A message in a result of the tool `attention`.
MESSAGE = re.compile(r'list[\\"]*:\s*[\\"]*messages[\\"]*,\s*[\\"]*seq[\\"]*:\s*(\d+)')
IDLE = "Nothing waits for me."
# A claim that outlasts a slow machine, and one that lapses soon after its host has died.
LONG, SHORT = "10m", "15s"
# How long a call waits: shorter than what Codex passes on in one piece.
WAIT_S = 25


@dataclass(frozen=True)
class Thing:
    """One thing that waits for an agent."""

    kind: str  # "message" or "claimable"
    seq: int
    sender: str = ""


@dataclass(frozen=True)
class Tool:
    """A call of a tool of the board."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


# Which of several numbers comes first.
Pick = Callable[[list[int]], int]
# What a model does in one turn: it gives calls, gets their results, and ends with a text.
Turn = Generator[Tool, str, str]


def found(name: str, text: str) -> str | None:
    """The member of a result with this name. In text and in JSON within a string the quotes differ."""
    member = re.search(rf'\b{name}[\\"]*\s*:\s*[\\"]*([^"\\,}}]+)', text)
    return member[1] if member else None


def things(texts: list[str]) -> Counter[Thing]:
    """What the notices of hooks say, and how often."""
    seen: Counter[Thing] = Counter()
    for text in texts:
        for message, seq, sender, request in THING.findall(text):
            seen[Thing(message, int(seq), sender) if message else Thing("claimable", int(request))] += 1
    return seen


class Member:
    """A host's model. Its turns are generators, so that a play reads in the order in which it happens."""

    # The longest time for a host on a terminal, which stays open until the job is done.
    limit_s = 1200

    def __init__(self, host: hosts.Host, name: str) -> None:
        self.host, self.name, self.lock = host, name, threading.Lock()
        self.steps, self.over, self.has_begun = [1], threading.Event(), threading.Event()
        # What the member saw and did, for whoever reads the play.
        self.log: list[str] = []
        self.begin()

    def restart(self) -> None:
        """Forgets the conversation of a host that is gone, once its last request is over."""
        with self.lock:
            self.begin()

    def begin(self) -> None:
        """A new conversation of the host."""
        self.has_begun.clear()
        self.turn: Turn | None = None
        self.pending: Call | None = None
        self.tool: Tool | None = None
        self.length, self.count = 0, 0

    @property
    def at(self) -> int:
        """Reaches `steps` once the team's job is done, which ends a host on a terminal."""
        return int(self.over.is_set())

    def keys(self, _: str) -> tuple[str, ...]:
        return ()

    def next_turn(self, seen: Conversation) -> Turn | None:
        """What the model does about a request that follows no call."""
        raise NotImplementedError

    def answer(self, seen: Conversation) -> Call | str:
        with self.lock:
            if not self.host.main(seen):
                return "ok"
            self.has_begun.set()
            if self.pending:
                return self.goes_on(seen)
            self.turn = self.next_turn(seen)
            return self.said(None, seen) if self.turn else IDLE

    def goes_on(self, seen: Conversation) -> Call | str:
        """Takes the result of the last call."""
        result = seen.result(self.pending)
        if result is None:
            # The same request once more, or a conversation beside this one.
            return self.pending if len(seen.calls) == self.length else "ok"
        text = result.text()
        if self.pending.search or codex.RUNNING.search(text):
            return self.called(seen)
        self.log.append(f"{self.tool.name} {json.dumps(self.tool.arguments)} -> {text}")
        return self.said(text, seen)

    def said(self, result: str | None, seen: Conversation) -> Call | str:
        """The next call of the turn, or its text at its end."""
        try:
            self.tool = next(self.turn) if result is None else self.turn.send(result)
        except StopIteration as end:
            self.turn = self.pending = None
            return end.value
        return self.called(seen)

    def called(self, seen: Conversation) -> Call:
        """The call of the tool, or of the host's search for it."""
        call = self.host.call(self.tool.name, json.dumps(self.tool.arguments), seen)
        if call is None:
            raise LookupError(f"{self.name} has no tool {self.tool.name}")
        self.count += 1
        call.id = f"call_{self.count}"
        self.pending, self.length = call, len(seen.calls)
        return call


class Woken(Member):
    """Claude Code: its hooks report what waits, and it works until nothing does."""

    def __init__(self, host: hosts.Host, name: str, pick: Pick, middle: Callable[[], Any]) -> None:
        # Which of several requests it takes first, and what it does in the middle of one.
        self.pick, self.in_the_middle = pick, middle
        # For how long it renews its claim, in the middle of the work.
        self.renewal = LONG
        super().__init__(host, name)

    def begin(self) -> None:
        super().begin()
        self.known: Counter[Thing] = Counter()

    def next_turn(self, seen: Conversation) -> Turn | None:
        # Earlier notices stay in the conversation, and a thing may come again.
        told = things([part.text for part in seen.texts])
        news, self.known = list(told - self.known), told
        self.log += [f"learns of {thing}" for thing in news]
        return self.react(news) if news else None

    def react(self, news: list[Thing]) -> Turn:
        open_ = [thing.seq for thing in news if thing.kind == "claimable"]
        while open_:
            seq = self.pick(open_)
            open_.remove(seq)
            claim = yield Tool("claim_request", {"seq": seq, "ttl": LONG, "wait_s": 0})
            if found("fence", claim):
                yield from self.work(seq, claim)
        acks = [thing.seq for thing in news if thing.kind == "message"]
        if acks:
            yield Tool("attention", {"ack": acks, "wait_s": 0})
        return IDLE

    def work(self, seq: int, claim: str) -> Turn:
        task, fence = found("task", claim), int(found("fence", claim) or 0)
        yield Tool("append_items", {"log": "trajectories", "items": [{"step": seq, "text": f"I begin: {task}"}]})
        yield Tool("claim_request", {"seq": seq, "ttl": self.renewal, "wait_s": 0})
        self.in_the_middle()
        result = "done"
        if task == "Send the report":
            asked = {"question": "Send the report now?", "options": ["yes", "no"], "wait_s": WAIT_S}
            answer = yield Tool("ask_person", asked)
            result = f"sent, since the answer was {found('answer', answer)}"
            yield Tool("send_message", {"to": "lead", "item": "The report is sent.", "thread": "report"})
        if "past_attempts" in claim:
            lost = {"text": f"Your claim of request {seq} lapsed. I have done it.", "request": seq}
            yield Tool("send_message", {"to": found("agent", claim.partition("past_attempts")[2]), "item": lost})
        yield Tool("finish_request", {"seq": seq, "fence": fence, "result": result})
        return IDLE


class Started(Member):
    """Codex: `blackboard work` starts it for each request, and its answer is the result."""

    def __init__(self, host: hosts.Host, name: str, before: Callable[[], Any]) -> None:
        super().__init__(host, name)
        # What happens before its work.
        self.before = before

    def next_turn(self, seen: Conversation) -> Turn | None:
        if seen.calls:
            return None
        self.begin()
        self.before()
        return self.write("\n".join(part.text for part in seen.texts))

    def write(self, prompt: str) -> Turn:
        task = "summary" if "Write a summary" in prompt else "report"
        waiting = yield Tool("attention", {"wait_s": 0})
        if task == "summary":
            return "Sales rose in spring."
        answer = yield Tool("ask_person", {"question": "Which title shall the report have?", "wait_s": WAIT_S})
        title = found("answer", answer)
        yield Tool("append_items", {"log": "trajectories", "items": [{"step": 3, "text": f"The title is {title}"}]})
        yield Tool("send_message", {"to": "tester", "item": "Please check page 2 of the report.", "thread": "report"})
        yield Tool("attention", {"ack": [int(seq) for seq in MESSAGE.findall(waiting)], "wait_s": 0})
        return f"The report is there. Its title is {title}."
