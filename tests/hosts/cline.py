"""Cline CLI, without a terminal: `cline PROMPT`, with a model by Chat Completions."""

from __future__ import annotations

from typing import Any

from host import Host, Place, save

VERSION = "3.0.65"


class Cline(Host):
    """Tools are allowed unless `--auto-approve false` is given."""

    name = "cline"
    query = "&max_tokens=1500&images=none"
    npm = (f"cline@{VERSION}", f"@cline/cli-linux-x64@{VERSION}")

    def write(self, place: Place) -> None:
        transport: dict[str, Any] = {"type": "streamableHttp", "url": place.board}
        if place.token:
            transport["headers"] = {"Authorization": f"Bearer {place.token}"}
        settings = place.home / ".cline" / "data" / "settings"
        save(settings / "cline_mcp_settings.json", {"mcpServers": {"blackboard": {"transport": transport}}})
        model = {"provider": "openai-compatible", "apiKey": "scripted", "model": "scripted"}
        provider = {"settings": model | {"baseUrl": f"{place.model}/v1"}, "updatedAt": "2026-11-29T00:00:00Z"}
        providers = {"openai-compatible": provider | {"tokenSource": "manual"}}
        saved = {"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": providers}
        save(settings / "providers.json", saved)

    def command(self, place: Place, prompt: str) -> list[str]:
        # The program of the platform's package: the other one is made by an install script, which npm may not run.
        program = self.folder / "node_modules/@cline/cli-linux-x64/bin/cline"
        return [str(program), "--json", "--provider", "openai-compatible", "--model", "scripted", prompt]


HOSTS = [Cline()]
