"""Snippets of the guide to LangGraph, run unchanged with a model that has a script."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from agent_blackboard import Client

from ..snippets import run_page

GRAPHS = ("A graph that asks", "Answers", "What is shown", "Checkpoints", "Limits of checkpoints", "Store")


class Scripted(GenericFakeChatModel):
    """A model that says what its script has next, whatever the tools are."""

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self


def scripted(*said: str | tuple[str, dict[str, Any]]) -> Scripted:
    """A model that says texts and calls tools, in order."""
    messages = []
    for number, one in enumerate(said):
        if isinstance(one, str):
            messages.append(AIMessage(one))
        else:
            call = {"name": one[0], "args": one[1], "id": f"call_{number}"}
            messages.append(AIMessage("", tool_calls=[call]))
    return Scripted(messages=iter(messages))


@pytest.fixture(autouse=True)
def _server(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLACKBOARD_URL", url)
    with Client(url) as client:
        for name in ("langgraph:mail-1", "langgraph-store:ann"):
            if client.session(name).exists():
                client.session(name).delete()


def test_the_sections_on_graphs_run() -> None:
    assert run_page("langgraph.md", only=GRAPHS)["mail"]


def test_the_section_on_deep_agents_runs() -> None:
    model = scripted(
        ("write_file", {"file_path": "/memories/ann.md", "content": "Ann likes tea."}),
        ("write_file", {"file_path": "/note.md", "content": "Tea at four."}),
        ("send_mail", {"to": "ann@example.org", "body": "Tea at four?"}),
        "Sent.",
    )
    run = run_page("langgraph.md", only=(*GRAPHS, "Deep agents"), model=model)
    assert run["question"].item["options"] == ["approve", "reject"]


def test_the_section_on_langmem_runs() -> None:
    model = scripted(
        ("manage_memory", {"content": "Ann likes apple pie.", "action": "create"}),
        "Noted.",
        ("search_memory", {"query": "Which pie does Ann like?"}),
        "Apple pie.",
    )
    run_page("langgraph.md", only=(*GRAPHS, "LangMem"), model=model)
