"""Agent hosts that are woken by hooks or by the channel, with a scripted model that reads its messages."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import threading
from pathlib import Path
from typing import Any, ClassVar

import host as hosts
from conversation import Call, Conversation, Result
from machine import Other, until
from terminal import typed

GUIDE = hosts.FOLDER.parents[1] / "docs" / "guide" / "hosts.md"
NOTICE = re.compile(r"message (\d+) from planner: (\{.*\})")
PROMPT = "Say when you are ready."
START, STOP, IDLE = "Which chart is ready?", "Use the new colours.", "Bars or lines?"
AROUND = 400
# The events at which hosts are about to stop.
STOPS = ("Stop", "AfterAgent")
REPLY = "Lines are easier to read."


def blocks(heading: str) -> list[Any]:
    """The JSON blocks of a section of the guide."""
    section = GUIDE.read_text().partition(f"\n{heading}\n")[2]
    section = re.split(r"^#", section, maxsplit=1, flags=re.MULTILINE)[0]
    found = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)]
    if not found:
        raise ValueError(f"{GUIDE.name} has no JSON in the section {heading}")
    return found


def runs(words: str) -> bool:
    """Whether a process with these words runs here."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if words.encode() in file.read_bytes():
                return True
    return False


def around(text: str) -> str:
    """The notice in a text, with a little of what the host put around it."""
    begin = text.find("On the blackboard")
    end = text.find("\n\n", begin)
    return text[max(0, begin - AROUND) : end + AROUND if end > 0 else None].strip()


class Sleeper:
    """A host whose model reads each message once: it says so, and is asked again only if something is new."""

    name: ClassVar[str]
    agent: ClassVar[str]
    host_name: ClassVar[str]

    def __init__(self) -> None:
        self.host = hosts.every()[self.host_name]
        self.lock, self.idle = threading.Lock(), threading.Event()
        # What the model saw first of each message, what it did then, and what it got.
        self.seen: list[tuple[str, str]] = []
        self.facts: list[str] = []
        self.pending: Call | None = None
        self.requests = 0

    def answer(self, seen: Conversation) -> Call | str:
        """What the model says."""
        with self.lock:
            if not self.host.main(seen):
                return "ok"
            self.requests += 1
            if self.requests == 1:
                self.begun()
            if self.pending and (result := seen.result(self.pending)):
                return self.got(result)
            if news := self.news(seen):
                return self.read(news, seen)
            self.idle.set()
            return "I am ready."

    def begun(self) -> None:
        """What happens while the model thinks for the first time."""

    def news(self, seen: Conversation) -> str | None:
        """The text by which the model learns of a message, whatever its place and its role."""
        known = {seq for text, _ in self.seen for seq, _ in NOTICE.findall(text)}
        texts = [part.text for part in seen.texts]
        return next((text for text in texts if {seq for seq, _ in NOTICE.findall(text)} - known), None)

    def read(self, news: str, seen: Conversation) -> Call | str:
        self.seen.append((news, "said that it has read it"))
        return "I have read it."

    def got(self, result: Result) -> str:
        self.facts.append(f"its call gave `{result.text().strip()}`")
        self.pending = None
        return "That is done."

    def messages(self) -> list[str]:
        """The texts of the messages, in the order in which the model learned of them."""
        found = [item for text, _ in self.seen for _, item in NOTICE.findall(text)]
        return [json.loads(item)["text"] for item in found]

    def page(self) -> str:
        """What was seen, as a document."""
        lines = [f"# {self.name}: {', '.join(self.host.packages())}", ""]
        for text, did in self.seen:
            lines += ["The model saw:", "", "~~~~", around(text), "~~~~", "", f"It {did}.", ""]
        return "\n".join([*lines, *[f"- {fact}" for fact in self.facts], ""])

    def run(self, place: hosts.Place, commands: Path, variables: dict[str, str], other: Other, log: Path) -> None:
        """Runs the host to its end."""
        self.place, self.other = place, other
        self.host.write(place)
        self.configure(place)
        variables = hosts.variables(self.host, place) | variables
        variables["PATH"] = f"{commands}:{variables['PATH']}"
        self.live(variables, log)

    def configure(self, place: hosts.Place) -> None:
        """Writes the hooks, or the channel, by the guide's blocks."""
        raise NotImplementedError

    def live(self, variables: dict[str, str], log: Path) -> None:
        raise NotImplementedError


class Stopping(Sleeper):
    """A host without a terminal: it learns of one message at its start, and of one at its stop, and goes on, once."""

    heading: ClassVar[str]
    # The time for which a stop waits. The message then comes meanwhile, and else before.
    wait: ClassVar[str] = ""

    def hooks(self) -> Any:
        """The guide's block, in which the hook of a stop may wait."""
        block = blocks(self.heading)[0]
        stops = [hook for event in STOPS for group in block["hooks"].get(event, []) for hook in group["hooks"]]
        for hook in stops if self.wait else []:
            hook["command"] += f" --wait {self.wait}"
            hook["timeout"] *= 10
        return block

    def begun(self) -> None:
        send = threading.Thread(target=self.send, daemon=True)
        send.start()
        if not self.wait:
            send.join()

    def send(self) -> None:
        if self.wait:
            until("the hook waits", lambda: runs(f"--wait\0{self.wait}"))
        self.other.send(self.agent, STOP)

    def live(self, variables: dict[str, str], log: Path) -> None:
        self.other.send(self.agent, START)
        with log.open("w") as file:
            done = subprocess.run(
                self.host.command(self.place, PROMPT), cwd=self.place.work, env=variables, stdin=subprocess.DEVNULL,
                stdout=file, stderr=subprocess.STDOUT, timeout=self.host.limit_s, check=False,
            )  # fmt: skip
        assert done.returncode == 0, done
        assert self.messages() == [START, STOP], self.messages()
        # One answer before the stop, and one after it: the second stop had nothing new.
        assert self.requests == 2, self.requests
        self.facts.append("it stopped, was made to go on once, and stopped")


class ClaudeCodeStopping(Stopping):
    """`claude -p`."""

    name, agent, host_name, heading = "claude-code", "claude", "claude-code", "### Hooks of Claude Code"

    def configure(self, place: hosts.Place) -> None:
        hosts.save(place.work / ".claude" / "settings.json", self.hooks())


class GeminiCliStopping(Stopping):
    """`gemini -p`."""

    name, agent, host_name, heading = "gemini-cli", "gemini", "gemini-cli", "### Hooks of Gemini CLI"

    def configure(self, place: hosts.Place) -> None:
        path = place.work / ".gemini" / "settings.json"
        hosts.save(path, json.loads(path.read_text()) | self.hooks())


class GeminiCliWaiting(GeminiCliStopping):
    """Its stop waits."""

    name, wait = "gemini-cli-waiting", "20s"


class CodexStopping(Stopping):
    """Its hooks are trusted on a terminal first, as a person does it."""

    name, agent, host_name, heading = "codex", "codex", "codex", "### Hooks of Codex"

    def configure(self, place: hosts.Place) -> None:
        hosts.save(place.home / ".codex" / "hooks.json", self.hooks())

    def live(self, variables: dict[str, str], log: Path) -> None:
        Trusting(hosts.every()["codex-terminal"], self.place, variables, log)
        super().live(variables, log)


class CodexWaiting(CodexStopping):
    """Its stop waits."""

    name, wait = "codex-waiting", "20s"


class Trusting:
    """Codex on a terminal, until a person has trusted the hooks."""

    def __init__(self, host: hosts.Host, place: hosts.Place, variables: dict[str, str], log: Path) -> None:
        config = place.home / ".codex" / "config.toml"
        config.write_text(config.read_text() + f'[projects."{place.work}"]\ntrust_level = "trusted"\n')
        self.host, self.config, self.steps = host, config, [1]
        self.limit_s, self.has_typed = host.limit_s, False
        typed(self, self, [host.program("codex")], place.work, variables, log.with_suffix(".trust.log"))
        assert self.at == 1, "the hooks are not trusted"

    @property
    def at(self) -> int:
        return self.config.read_text().count("trusted_hash") // len(blocks(CodexStopping.heading)[0]["hooks"])

    def keys(self, screen: str) -> tuple[str, ...]:
        if self.has_typed or "Trustallandcontinue" not in screen:
            return ()
        self.has_typed = True
        return ("2", "\r")


class Idle(Sleeper):
    """Claude Code on a terminal, which has nothing to do. Its model acknowledges a message and answers it."""

    host_name, agent = "claude-code-terminal", "claude"

    @property
    def at(self) -> int:
        """Reaches `steps` once the model has dealt with the message."""
        return len(self.facts)

    steps: ClassVar[list[int]] = [1]

    def read(self, news: str, seen: Conversation) -> Call | str:
        seqs = [seq for seq, _ in NOTICE.findall(news)]
        reply = json.dumps({"text": REPLY, "reply_to": int(seqs[-1])})
        command = f"blackboard messages demo claude --ack {','.join(seqs)}"
        command = f"{command} && blackboard post demo/agents/planner/messages '{reply}'"
        self.pending = Call("Bash", json.dumps({"command": command}), "call_1")
        self.seen.append((news, f"called Bash with `{command}`"))
        return self.pending

    def live(self, variables: dict[str, str], log: Path) -> None:
        sending = threading.Thread(target=self.send, daemon=True)
        sending.start()
        command = [self.host.program("claude"), PROMPT, *self.options()]
        typed(self.host, self, command, self.place.work, variables, log)
        sending.join()
        assert self.messages() == [IDLE], self.messages()
        replies = self.other.own("planner")
        assert [reply["item"]["text"] for reply in replies] == [REPLY], replies
        assert [reply["agent"] for reply in replies] == ["claude"], replies
        self.facts.append(f"the other machine got `{json.dumps(replies[0]['item'])}` from {replies[0]['agent']}")

    def send(self) -> None:
        """Sends the message once the model has said that it is ready."""
        self.idle.wait(self.host.limit_s)
        self.other.send(self.agent, IDLE)

    def options(self) -> list[str]:
        # Its auto mode asks Anthropic's service about each command.
        return ["--permission-mode", "default", "--allowedTools", "Bash"]


class IdleByHook(Idle):
    """Its hook waits in the background, and wakes it."""

    name = "claude-code-idle"

    def configure(self, place: hosts.Place) -> None:
        hosts.save(place.work / ".claude" / "settings.json", blocks("### Wake an idle Claude Code")[0])


class IdleByBridge(IdleByHook):
    """Its hook wakes it; its model acknowledges and answers by the tools of the bridge."""

    name = "claude-code-bridge"

    def __init__(self) -> None:
        super().__init__()
        # What the model will call, and what it has called.
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.called: list[str] = []

    def configure(self, place: hosts.Place) -> None:
        super().configure(place)
        bridge = {"command": "blackboard", "args": ["mcp", "--session", "demo", "--agent", "claude"]}
        hosts.save(place.work / "mcp.json", {"mcpServers": {"blackboard": bridge}})

    def options(self) -> list[str]:
        return ["--mcp-config", "mcp.json", "--permission-mode", "default", "--allowedTools", "mcp__blackboard"]

    def read(self, news: str, seen: Conversation) -> Call | str:
        seq = int(NOTICE.findall(news)[-1][0])
        item = {"text": REPLY, "reply_to": seq}
        self.calls = [("attention", {"ack": [seq], "wait_s": 0}), ("send_message", {"to": "planner", "item": item})]
        self.seen.append((news, "called the bridge"))
        return self.next_call(seen)

    def next_call(self, seen: Conversation) -> Call:
        """The next call, or the search for its tool."""
        name, arguments = self.calls[0]
        call = self.host.call(name, json.dumps(arguments), seen)
        assert call is not None, f"the bridge has no tool {name}"
        call.id = f"call_{self.requests}"
        self.pending = call
        return call

    def answer(self, seen: Conversation) -> Call | str:
        with self.lock:
            done = self.pending
            if done and self.host.main(seen) and (result := seen.result(done)):
                self.requests += 1
                if not done.search:
                    self.calls.pop(0)
                    self.called.append(f"`{done.name}` with `{done.arguments}`, which gave `{result.text().strip()}`")
                return self.next_call(seen) if self.calls else self.ended()
        return super().answer(seen)

    def ended(self) -> str:
        self.pending = None
        self.facts.append(f"it called {', and '.join(self.called)}")
        return "That is done."


class IdleByChannel(Idle):
    """The bridge's channel.

    Claude Code enables channels only where it can ask Anthropic's service whether it may, which it cannot here. What it
    says before shows that it takes the bridge's declaration and the connection.
    """

    name = "claude-code-channel"

    def configure(self, place: hosts.Place) -> None:
        hosts.save(place.work / "mcp.json", blocks("### The channel of Claude Code")[0])

    def options(self) -> list[str]:
        log = str(hosts.TARGET / f"wake-{self.name}.debug.log")
        channel = ["--dangerously-load-development-channels", "server:blackboard"]
        return ["--mcp-config", "mcp.json", "--debug-file", log, *channel]

    @property
    def at(self) -> int:
        return len(self.said())

    def said(self) -> list[str]:
        """What Claude Code says of the channel."""
        log = hosts.TARGET / f"wake-{self.name}.debug.log"
        text = log.read_text() if log.exists() else ""
        return re.findall(r'MCP server "blackboard": (Channel notifications .*)', text)

    def live(self, variables: dict[str, str], log: Path) -> None:
        (hosts.TARGET / f"wake-{self.name}.debug.log").unlink(missing_ok=True)
        command = [self.host.program("claude"), *self.options()]
        typed(self.host, self, command, self.place.work, variables, log)
        assert self.said() == ["Channel notifications skipped: channels feature is not currently available"]
        self.facts.append(f"Claude Code says: {self.said()[0]}")


def every() -> dict[str, Sleeper]:
    """All of them, by the names that the harness takes."""
    stopping = (ClaudeCodeStopping, CodexStopping, CodexWaiting, GeminiCliStopping, GeminiCliWaiting)
    kinds: tuple[type[Sleeper], ...] = (*stopping, IdleByHook, IdleByBridge, IdleByChannel)
    return {kind.name: kind() for kind in kinds}
