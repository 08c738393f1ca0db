"""Qwen Code, without a terminal: `qwen PROMPT`, with a model by Chat Completions."""

from __future__ import annotations

import json
from typing import Any

from conversation import Call, Conversation
from host import Host, Place, save

VERSION = "0.24.4"
MODEL = "qwen3.7-plus"


class QwenCode(Host):
    """Tools are deferred: the model reads their schemas by `tool_search` and calls them by `tool_call`."""

    name = "qwen-code"
    npm = (f"@qwen-code/qwen-code@{VERSION}",)

    def write(self, place: Place) -> None:
        server: dict[str, Any] = {"httpUrl": place.board, "trust": True}
        if place.token:
            server["headers"] = {"Authorization": "Bearer $BLACKBOARD_TOKEN"}
        settings = {
            "security": {"auth": {"selectedType": "openai"}},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "mcpServers": {"blackboard": server},
        }
        save(place.home / ".qwen" / "settings.json", settings)

    def command(self, place: Place, prompt: str) -> list[str]:
        return [self.program("qwen"), "--output-format", "stream-json", prompt]

    def environment(self, place: Place) -> dict[str, str]:
        return {
            "BLACKBOARD_TOKEN": place.token,
            "OPENAI_API_KEY": "scripted",
            "OPENAI_BASE_URL": f"{place.model}/v1",
            "OPENAI_MODEL": MODEL,
        }

    def main(self, seen: Conversation) -> bool:
        # At the end it asks the model beside the job what is to be remembered, with other tools.
        return seen.tool("tool_call") is not None

    def call(self, tool: str, arguments: str, seen: Conversation) -> Call | None:
        name = f"mcp__blackboard__{tool}"
        # After a call that broke off, the tools are gone until it connects again, which takes it up to 95 s.
        refused = seen.results and seen.results[-1].text().startswith("[tool_call bridge refused]")
        if not refused and any(name in result.text() for result in seen.results):
            return Call("tool_call", f'{{"name":"{name}","arguments":{arguments}}}')
        return Call("tool_search", json.dumps({"query": f"select:{name}"}), search=True)


HOSTS = [QwenCode()]
