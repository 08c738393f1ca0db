"""Codex, without a terminal: `codex exec`, with a model of its own (code mode) and with one that it does not know."""

from __future__ import annotations

import json
import re

from conversation import Call, Conversation
from host import Host, Place, save

VERSION = "0.171.0"
OWN_MODEL = "gpt-6.2-sol"
LOOK = "text(ALL_TOOLS.filter(tool => tool.name.includes('blackboard')));"
RUNNING = re.compile(r"Script running with cell ID (\w+)")


class Codex(Host):
    """Codex by `config.toml`. Approvals: `default_tools_approval_mode`, since `codex exec` has nobody to ask."""

    npm = (f"@openai/codex@{VERSION}",)

    query = "&max_tokens=3000"

    def __init__(self, name: str, model: str, approval: str | None) -> None:
        self.name, self.model, self.approval = name, model, approval  # type: ignore[misc]

    def write(self, place: Place) -> None:
        lines = [
            f'model = "{self.model}"',
            'model_provider = "scripted"',
            "check_for_update_on_startup = false",
            "[analytics]",
            "enabled = false",
            "[model_providers.scripted]",
            'name = "scripted"',
            f'base_url = "{place.model}/v1"',
            'wire_api = "responses"',
            "[mcp_servers.blackboard]",
            f'url = "{place.board}"',
            *(['bearer_token_env_var = "BLACKBOARD_TOKEN"'] if place.token else []),
            "tool_timeout_sec = 60",
        ]
        if self.approval:
            lines.append(f'default_tools_approval_mode = "{self.approval}"')
        save(place.home / ".codex" / "config.toml", "\n".join(lines) + "\n")

    def command(self, place: Place, prompt: str) -> list[str]:
        return [self.program("codex"), "exec", "--skip-git-repo-check", "--json", prompt]

    def environment(self, place: Place) -> dict[str, str]:
        return {"BLACKBOARD_TOKEN": place.token} if place.token else {}

    def call(self, tool: str, arguments: str, seen: Conversation) -> Call | None:
        if not any(found.name == "exec" and found.kind == "custom" for found in seen.tools):
            return super().call(tool, arguments, seen)
        if not seen.calls:
            return Call("exec", LOOK, kind="custom", search=True)
        running = seen.results and RUNNING.search(seen.results[-1].text())
        if running:
            # A script of more than ten seconds goes on beside the model, which waits for it by another call.
            return Call("wait", json.dumps({"cell_id": running[1], "yield_time_ms": 60000}))
        # As the description of `exec` tells: images one by one, everything else as it comes.
        shown = "result.content.forEach(part => part.type === 'image' ? image(part) : text(part));"
        shown = shown if tool == "get_screenshot" else "text(result);"
        script = f"const result = await tools.mcp__blackboard__{tool}({arguments});\n{shown}"
        return Call("exec", script, kind="custom")

    def search(self, tool: str, seen: Conversation) -> Call | None:
        if not any(found.kind == "tool_search" for found in seen.tools):
            return None
        return Call("tool_search", json.dumps({"query": f"blackboard {tool}"}), kind="tool_search", search=True)


class CodexOnTerminal(Codex):
    """The interactive mode: the folder is trusted by file; a person allows the one call that is asked about."""

    terminal = True
    think_s = 3.0

    def write(self, place: Place) -> None:
        super().write(place)
        config = place.home / ".codex" / "config.toml"
        config.write_text(config.read_text() + f'[projects."{place.work}"]\ntrust_level = "trusted"\n')

    def command(self, place: Place, prompt: str) -> list[str]:
        return [self.program("codex"), prompt]

    def keys(self, screen: str) -> tuple[str, ...]:
        return ("\r",) if "Allow" in screen else ()


HOSTS = [
    Codex("codex", OWN_MODEL, "approve"),
    Codex("codex-unasked", OWN_MODEL, None),
    CodexOnTerminal("codex-terminal", OWN_MODEL, None),
    Codex("codex-unknown-model", "scripted", "approve"),
]
