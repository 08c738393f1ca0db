"""Snippets of the guide to Microsoft Agent Framework, run unchanged."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

import pytest
from agent_framework import BaseChatClient, ChatResponse, Message

from ..snippets import run_page


class Scripted(BaseChatClient):
    """A model that gives its answers one after another."""

    def __init__(self, *answers: str) -> None:
        super().__init__()
        self._answers = list(answers)

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Any, **kwargs: Any
    ) -> Awaitable[ChatResponse]:
        async def respond() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", [self._answers.pop(0)])])

        return respond()


def test_the_page_runs(url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("BLACKBOARD_URL", url)
    run_page("agent-framework.md", model=Scripted("San Francisco", "California"))
    answer, count, first, second, city, outputs = capsys.readouterr().out.splitlines()
    assert (answer, count, city, outputs) == ("California", "4", "San Francisco", "[3]")
    assert (first.split()[-1], second.split()[-1]) == ("user", "assistant")
