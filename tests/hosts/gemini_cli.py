"""Gemini CLI, without a terminal: `gemini -p` in a trusted folder."""

from __future__ import annotations

from typing import Any

from host import Host, Place, save

VERSION = "0.61.0"
MODEL = "gemini-2.5-pro"


class GeminiCli(Host):
    """The server is in the folder's settings, which are read in trusted folders only; `trust` allows its tools."""

    name = "gemini-cli"
    npm = (f"@google/gemini-cli@{VERSION}",)

    def write(self, place: Place) -> None:
        server: dict[str, Any] = {"type": "http", "url": place.board, "trust": True}
        if place.token:
            server["headers"] = {"Authorization": "Bearer $BLACKBOARD_TOKEN"}
        save(place.work / ".gemini" / "settings.json", {"mcpServers": {"blackboard": server}})
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
        }
        save(place.home / ".gemini" / "settings.json", settings)
        save(place.home / ".gemini" / "trustedFolders.json", {str(place.work): "TRUST_FOLDER"})

    def command(self, place: Place, prompt: str) -> list[str]:
        return [self.program("gemini"), "--output-format", "stream-json", "-p", prompt]

    def environment(self, place: Place) -> dict[str, str]:
        return {
            "BLACKBOARD_TOKEN": place.token,
            "GEMINI_API_KEY": "scripted",
            # Without a name it asks a model which model to ask.
            "GEMINI_MODEL": MODEL,
            "GOOGLE_GEMINI_BASE_URL": place.model,
        }


HOSTS = [GeminiCli()]
