"""The server for tests: where its command is found, how it starts and ends."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from agent_blackboard import Client, ConnectionFailed, testing


def test_a_block_has_a_server_that_answers() -> None:
    with testing.server() as running, Client(running.url) as client:
        client.session("tried").state["page"] = 1
        assert client.session("tried").state["page"] == 1
        directory = running.data.parent
    assert not directory.exists()
    with Client(running.url, retry=False) as client, pytest.raises(ConnectionFailed):
        client.session("tried").state["page"] = 1


def test_two_servers_share_neither_port_nor_data() -> None:
    with testing.server() as one, testing.server() as other:
        assert one.url != other.url
        with Client(one.url) as client:
            client.session("tried").state["page"] = 1
        with Client(other.url) as client:
            assert list(client.sessions()) == []


def test_a_killed_server_starts_again_at_its_address() -> None:
    with testing.server() as running:
        url = running.url
        with Client(url) as client:
            client.session("tried").state["page"] = 1
            running.kill()
            running.start()
            assert client.session("tried").state["page"] == 1
        assert running.url == url


def test_options_and_tokens_reach_the_server() -> None:
    with testing.server("--require-token") as running:
        with Client(running.url, token=running.token("--name", "tests")) as client:
            client.session("tried").state["page"] = 1


def test_a_wrong_option_shows_what_the_server_says() -> None:
    with pytest.raises(RuntimeError, match="--no-such-option"), testing.server("--no-such-option"):
        pass


def test_the_named_command_comes_before_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = types.ModuleType("blackboard_server")
    package.binary = lambda: tmp_path / "packaged"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "blackboard_server", package)
    monkeypatch.setenv("BLACKBOARD_BIN", "/opt/blackboard")
    assert testing.binary() == Path("/opt/blackboard")
    monkeypatch.delenv("BLACKBOARD_BIN")
    assert testing.binary() == tmp_path / "packaged"


def test_without_the_package_the_path_is_searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "blackboard_server", None)
    monkeypatch.delenv("BLACKBOARD_BIN")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"agent-blackboard\[server\]"):
        testing.binary()
    command = tmp_path / "blackboard"
    command.touch(0o755)
    assert testing.binary() == command
