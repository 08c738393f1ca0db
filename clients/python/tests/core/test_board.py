"""Board of a session through the client: prompts, screenshots, agents, history, archives."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest

from agent_blackboard import (
    AgentNotFound,
    BlobNotFound,
    CheckpointNotFound,
    ConditionNotMet,
    HistoryCompacted,
    IllegalTransition,
    ItemTooLarge,
    NoBlob,
    NoImage,
    SessionExists,
    SessionNotFound,
    UnsupportedValue,
)

GIF = base64.b64decode("R0lGODdhAgADAIEAAMgeCgAAAAAAAAAAACwAAAAAAgADAAAIBgABCBwYEAA7")


class Picture:
    """An object with Pillow's `save`, as far as the client uses it."""

    def save(self, fp: io.BytesIO, format: str | None = None) -> None:
        assert format == "PNG"
        fp.write(GIF)


def test_a_prompt_is_typed_for_each_provider(session: Any) -> None:
    session.trajectories.append({"step": 1, "thought": "ü"})
    session.screenshots.add(GIF, metadata="m")
    prompt = session.prompt()
    assert prompt.parts[0] == {"type": "text", "text": "[Blackboard:]"}
    assert prompt.parts[-1]["image_url"]["url"].startswith("data:image/gif;base64,")
    assert (prompt.revision, prompt.empty, prompt.truncated) == (2, False, 0)
    assert '"thought": "\\u00fc"' in prompt.text
    assert session.prompt("responses").parts[0]["type"] == "input_text"
    assert session.prompt("anthropic", cache_marks=True).parts[-1]["type"] in ("image", "text")
    assert "text" in session.prompt("gemini").parts[0]
    assert session.prompt("markdown").text.startswith("# Blackboard")
    short = session.prompt(max_tokens=40, include=["trajectories"], keys=["step"], latest=1, of_agent="HostAgent")
    assert short.tokens <= 40
    assert session.prompt(at=1, images="none").revision == 1


def test_the_whole_board_is_read_replaced_and_cleared(session: Any) -> None:
    board = {"questions": [{"q": 1}], "requests": [], "trajectories": [{"step": 1.0}], "screenshots": []}
    session.replace_blackboard({**board, "state": {"x": 1}})
    assert session.blackboard() == board
    assert session.blackboard(include_state=True)["state"] == {"x": 1}
    session.clear()
    assert session.describe()["is_empty"] is True
    assert session.state.get("x") == 1
    session.clear(include_state=True)
    assert session.state.get() == {}


def test_a_screenshot_comes_from_a_path_bytes_or_an_image(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.gif"
    path.write_bytes(GIF)
    assert session.screenshots.add(path).seq == 1
    session.screenshots.add(str(path), image_path="label", metadata={"app": "Word"})
    session.screenshots.add(GIF)
    session.screenshots.add(Picture())
    with session.transaction() as t:
        t.append_screenshot(GIF, metadata=1)
    found = list(session.screenshots.entries())
    assert [entry.item["image_path"] for entry in found] == [str(path), "label", "", "", ""]
    assert "image_str" not in found[0].item
    assert found[0].image["media_type"] == "image/gif"
    assert session.screenshots.image(1) == GIF
    assert session.screenshots.image(1, max_px=1)
    inline = next(session.screenshots.entries(images="inline")).item["image_str"]
    assert inline == "data:image/gif;base64," + base64.b64encode(GIF).decode()
    session.screenshots.append({"image_str": ""})
    with pytest.raises(NoImage):
        session.screenshots.image(6)
    with pytest.raises(UnsupportedValue, match="PIL"):
        session.screenshots.add(7)
    with pytest.raises(FileNotFoundError):
        session.screenshots.add(tmp_path / "none.png")


def test_an_image_beyond_the_bound_is_refused(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    with path.open("wb") as file:
        file.truncate((32 << 20) + 1)
    for large in (path, bytes((32 << 20) + 1)):
        with pytest.raises(UnsupportedValue, match="32 MiB"):
            session.screenshots.add(large)
    assert not session.exists()


def test_media_types_are_told_by_the_first_bytes() -> None:
    from agent_blackboard.images import media_type

    signatures = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"BM": "bmp", b"RIFF1234WEBP": "webp"}
    for signature, kind in signatures.items():
        assert media_type(signature + bytes(20)) == f"image/{kind}"
    with pytest.raises(UnsupportedValue, match="PNG"):
        media_type(b"hello")


def test_an_item_beyond_the_bound_writes_nothing(session: Any) -> None:
    with pytest.raises(ItemTooLarge):
        session.trajectories.append({"text": "x" * (7 << 20)})
    assert not session.exists()


def test_agents_are_registered_and_awaited(session: Any) -> None:
    assert list(session.agents.list()) == []
    session.agents.put("AppAgent", {"type": "AppAgent", "host": "HostAgent", "status": "CONTINUE"})
    session.agents.put("App/1".replace("/", "-"), {"status": "CONTINUE"})
    session.agents.patch("AppAgent", {"platform": "windows"})
    session.agents.set_status("AppAgent", "PENDING")
    assert session.agents.wait_status("AppAgent", "PENDING", 1)["platform"] == "windows"
    assert [agent["agent"] for agent in session.agents.list(status="PENDING")] == ["AppAgent"]
    assert "last_seen" in session.agents.get("AppAgent", seen=True)
    with pytest.raises(ConditionNotMet):
        session.agents.wait_status("AppAgent", "FINISH", "10ms")
    with pytest.raises(IllegalTransition, match="PENDING to FINISH"):
        session.agents.set_status("AppAgent", "FINISH")
    session.agents.delete("AppAgent")
    with pytest.raises(AgentNotFound):
        session.agents.get("AppAgent")
    session.agents.clear()
    assert list(session.agents.list()) == []


def test_blobs_are_stored_once_and_kept_by_a_reference(session: Any) -> None:
    blob = session.blobs.put(b"bytes \x00", "application/x-test")
    assert (blob.bytes, blob.media_type) == (7, "application/x-test")
    session.state.set("file", blob.ref)
    assert session.blobs.get(blob.sha256) == b"bytes \x00"
    assert session.blobs.exists(blob.sha256)
    assert not session.blobs.exists("0" * 64)
    with pytest.raises(BlobNotFound):
        session.blobs.get("0" * 64)
    with pytest.raises(NoBlob):
        session.state.set("file", {"$blob": "0" * 64})


def test_history_is_named_restored_forked_and_forgotten(session: Any, client: Any) -> None:
    session.trajectories.append({"step": 1})
    session.checkpoints.create("begin")
    session.trajectories.append({"step": 2})
    session.state.set("x", 1)
    assert [checkpoint["name"] for checkpoint in session.checkpoints.list()] == ["begin"]
    assert session.checkpoints.get("begin")["revision"] == 2
    changes = list(session.diff("begin"))
    assert [change["kind"] for change in changes] == ["added", "added"]
    assert len(list(session.audit())) == 4
    fork = session.fork(f"{session.name}-fork", at="begin")
    assert fork.trajectories.count() == 1
    with pytest.raises(SessionExists):
        session.fork(f"{session.name}-fork")
    session.restore("begin")
    assert session.trajectories.count() == 1
    session.purge()
    with pytest.raises(HistoryCompacted) as gone:
        session.blackboard(at=1)
    assert gone.value.oldest_revision == session.describe()["oldest_revision"]
    session.checkpoints.delete("begin")
    with pytest.raises(CheckpointNotFound):
        session.checkpoints.get("begin")
    fork.delete()
    fork.delete()
    with pytest.raises(SessionNotFound):
        fork.delete(missing_ok=False)


def test_an_archive_is_a_file(session: Any, client: Any, tmp_path: Path) -> None:
    session.screenshots.add(GIF, metadata="m")
    path = tmp_path / "a.ndjson"
    session.export_archive(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.ndjson"]
    name = f"{session.name}-copy"
    client.import_archive(name, path)
    assert client.session(name).blackboard() == session.blackboard()
    with pytest.raises(SessionExists):
        client.import_archive(name, path)


def test_an_archive_of_nothing_leaves_no_file(session: Any, tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        session.export_archive(tmp_path / "a.ndjson")
    assert list(tmp_path.iterdir()) == []


def test_sessions_are_configured_listed_and_searched(session: Any, client: Any) -> None:
    session.configure({"max_items": 3}, {"team": "a"}, [{"question": "q", "answer": "a"}])
    session.configure(labels={"more": "b"})
    described = session.describe()
    assert described["settings"] == {"max_items": 3}
    assert described["labels"]["team"] == "a"
    assert [found["session"] for found in client.sessions(prefix=session.name, labels={"team": "a"})] == [session.name]
    receipt = session.trajectories.append({"thought": "a zebrafish swims"})
    session.requests.append({"do": "zebrafish"})
    hits = list(client.search("zebrafish", session=session.name, min_revision=receipt.revision + 1))
    assert {hit["log"] for hit in hits} == {"trajectories", "requests"}
    assert len(list(client.search("zebrafish", session=session.name, limit=1))) == 1
    assert any(found.session == session.name for found in client.work())
    assert client.server()["name"] == "blackboard"
    assert session.name in repr(session)


def test_a_client_with_other_options_shares_the_connections(client: Any, session_name: str) -> None:
    other = client.with_options(agent="B", timeout=5)
    assert (other.agent, other.timeout, other.url) == ("B", 5, client.url)
    other.session(session_name).trajectories.append({"step": 1})
    assert client.session(session_name).trajectories.get(1).agent == "B"
