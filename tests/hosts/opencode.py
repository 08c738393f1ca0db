"""opencode, without a terminal: `opencode run`, with a provider of one's own by Chat Completions."""

from __future__ import annotations

from typing import Any

from host import Host, Place, save

VERSION = "1.18.33"


class OpenCode(Host):
    """Tools are allowed unless the file says otherwise."""

    name = "opencode"
    npm = (f"opencode-ai@{VERSION}", f"opencode-linux-x64@{VERSION}")

    def write(self, place: Place) -> None:
        server: dict[str, Any] = {"type": "remote", "url": place.board}
        if place.token:
            server["headers"] = {"Authorization": "Bearer {env:BLACKBOARD_TOKEN}"}
        model = {"name": "scripted", "modalities": {"input": ["text", "image"], "output": ["text"]}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{place.model}/v1", "apiKey": "scripted"},
            "models": {"scripted": model},
        }
        settings = {
            "$schema": "https://opencode.ai/config.json",
            "model": "scripted/scripted",
            "provider": {"scripted": provider},
            "mcp": {"blackboard": server},
            "autoupdate": False,
        }
        save(place.work / "opencode.json", settings)

    def command(self, place: Place, prompt: str) -> list[str]:
        # The program of the platform's package: the other one is made by an install script, which npm may not run.
        program = self.folder / "node_modules/opencode-linux-x64/bin/opencode"
        return [str(program), "run", "--format", "json", prompt]

    def environment(self, place: Place) -> dict[str, str]:
        return {"BLACKBOARD_TOKEN": place.token, "OPENCODE_DISABLE_MODELS_FETCH": "1"}


HOSTS = [OpenCode()]
