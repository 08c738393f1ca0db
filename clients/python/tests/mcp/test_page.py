"""Snippets of the guides for agent hosts and frameworks, run unchanged."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
from agents.testing import ScriptedModel, assistant_message, function_call

from ..snippets import PAGES, run_page


def called(url: str, tool: str, arguments: dict[str, Any]) -> Any:
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return httpx.post(f"{url}/mcp?session=demo&agent=person", json=message).json()["result"]


def test_the_page_runs(url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("BLACKBOARD_TOKEN", "the server needs none")
    assert not called(url, "append_items", {"log": "requests", "items": ["print"]})["isError"]
    model = ScriptedModel([[function_call("claim_request", {}, call_id="c1")], [assistant_message("done")]])
    run_page("frameworks.md", instead=("http://127.0.0.1:8733", url), only=("OpenAI", "LangGraph"), model=model)
    answer, overview = capsys.readouterr().out.split("\n", 1)
    assert answer == "done"
    assert "finish_request with seq=1" in str(model.calls[1])
    assert "The board at a glance." in overview
    assert "claimable_requests_count" in overview


def test_the_configurations_are_json() -> None:
    blocks = re.findall(r"```json\n(.*?)```", (PAGES / "hosts.md").read_text(), re.DOTALL)
    assert len(blocks) == 10
    for block in blocks:
        servers = json.loads(block)
        if "hooks" in servers:
            assert "blackboard attention" in block
            continue
        named = servers.get("mcpServers") or servers.get("servers") or servers["mcp"]
        assert "blackboard" in named
