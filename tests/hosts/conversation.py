"""A request to a model, whatever its wire format: what the model sees of a host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Part:
    """A piece of what a model sees: its kind is "text", "image" or the wire's own name."""

    kind: str
    text: str


@dataclass
class Tool:
    """A tool as the host shows it. Some hosts put the tools of a server into a namespace."""

    name: str
    description: str
    schema: Any = None
    namespace: str | None = None
    kind: str = "function"
    # True where the host gives a tool to the provider only, which shows it to the model after a search.
    deferred: bool = False


@dataclass
class Call:
    """A call by the model. `arguments` are JSON text, so that numbers go out as they are written."""

    name: str
    arguments: str
    id: str = ""
    namespace: str | None = None
    kind: str = "function"
    # True for a call that only looks for a tool: the step is not done by it.
    search: bool = False


@dataclass
class Result:
    """The answer to a call, as the model sees it. `error` is the wire's mark, where it has one."""

    id: str
    parts: list[Part]
    error: bool | None = None

    def text(self) -> str:
        """Everything but the images, in one piece."""
        return "\n".join(part.text for part in self.parts if part.kind != "image")


@dataclass
class Conversation:
    """One request to the model."""

    texts: list[Part] = field(default_factory=list)  # `kind` is the role here
    tools: list[Tool] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    # Whether the answer is to be JSON of a schema, as titles are.
    formed: bool = False

    def result(self, call: Call) -> Result | None:
        """The result of this call. Hosts that drop ids keep the order."""
        for result in reversed(self.results):
            if result.id == call.id:
                return result
        if self.results and not self.results[-1].id and len(self.results) == len(self.calls):
            return self.results[-1]
        return None

    def tool(self, name: str) -> Tool | None:
        """The tool of the board with this name that the model sees, under whatever prefix the host gives it."""
        ends = [tool for tool in self.tools if tool.name.endswith(name) and not tool.deferred]
        exact = [tool for tool in ends if tool.name == name]
        return (exact or sorted(ends, key=lambda tool: len(tool.name)) or [None])[0]
