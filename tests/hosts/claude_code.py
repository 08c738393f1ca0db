"""Claude Code, without a terminal: `claude -p`."""

from __future__ import annotations

import json
from typing import Any

from conversation import Call, Conversation
from host import Host, Place, save

VERSION = "2.1.332"


class ClaudeCode(Host):
    """Tools are deferred: the model looks for them with ToolSearch, by full name."""

    name = "claude-code"
    npm = (f"@anthropic-ai/claude-code@{VERSION}", f"@anthropic-ai/claude-code-linux-x64@{VERSION}")

    def write(self, place: Place) -> None:
        server: dict[str, Any] = {"type": "http", "url": place.board}
        if place.token:
            server["headers"] = {"Authorization": "Bearer ${BLACKBOARD_TOKEN}"}
        save(place.work / "mcp.json", {"mcpServers": {"blackboard": server}})

    def program(self, name: str) -> str:
        # The program of the platform's package: the other one is made by an install script, which npm may not run.
        return str(self.folder / "node_modules/@anthropic-ai/claude-code-linux-x64" / name)

    def command(self, place: Place, prompt: str) -> list[str]:
        options = ["--mcp-config", "mcp.json", "--allowedTools", "mcp__blackboard", "--output-format", "stream-json"]
        return [self.program("claude"), "-p", prompt, "--verbose", *options]

    def environment(self, place: Place) -> dict[str, str]:
        return {
            "BLACKBOARD_TOKEN": place.token,
            "ANTHROPIC_BASE_URL": place.model,
            "ANTHROPIC_API_KEY": "scripted",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
        }

    def search(self, tool: str, seen: Conversation) -> Call | None:
        if seen.tool("ToolSearch") is None:
            return None
        return Call("ToolSearch", json.dumps({"query": f"select:mcp__blackboard__{tool}"}), search=True)


class ClaudeCodeOnTerminal(ClaudeCode):
    """The interactive mode: the first dialogs are answered by files; a person answers the question of `ask_here`."""

    name = "claude-code-terminal"
    terminal = True
    think_s = 3.0

    def write(self, place: Place) -> None:
        super().write(place)
        project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        state = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": ["scripted"], "rejected": []},
            "projects": {str(place.work): project},
        }
        save(place.home / ".claude.json", state)

    def command(self, place: Place, prompt: str) -> list[str]:
        command = super().command(place, prompt)
        return [command[0], prompt, *command[command.index("--mcp-config") : command.index("--output-format")]]

    def keys(self, screen: str) -> tuple[str, ...]:
        # The field, its end, which goes on to Accept, and that.
        return ("green", "\r", "\r") if "Whichsize?" in screen and "Accept" in screen else ()


HOSTS = [ClaudeCode(), ClaudeCodeOnTerminal()]
