"""Calls of the board beyond the original's vectors: documented ones, other writers, round trips."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from agent_blackboard import Client, ItemTooLarge, PathNotFound, PreconditionFailed, UnsupportedValue, ufo
from agent_blackboard.ufo import Blackboard, ImageMemoryItem, Memory, MemoryItem
from agent_blackboard.ufo.sender import Sender

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGNg4BZT1DFnYBWQVjO0AQAH/AFp9bAs2QAAAABJRU5ErkJggg=="
)
EMPTY: dict[str, list[Any]] = {"questions": [], "requests": [], "trajectories": [], "screenshots": []}
pytestmark = pytest.mark.usefixtures("drop_in")


class Step:
    """An item of another class, which has no more than `to_dict`."""

    def to_dict(self) -> dict[str, Any]:
        return {"step": 7}


def test_each_board_has_a_session_of_its_own_unless_one_is_named(session_name: str) -> None:
    first, second = Blackboard(), Blackboard()
    assert first.session != second.session
    first.add_requests("here")
    assert second.is_empty()
    assert not first.is_empty()
    ufo.configure(session=session_name)
    third, fourth = Blackboard(), Blackboard()
    third.add_requests("there")
    assert fourth.session == session_name
    assert fourth.requests.list_content == [{"text": "there"}]


def test_a_board_shows_what_other_programs_write(client: Client) -> None:
    board = Blackboard()
    client.session(board.session).requests.append({"device": "linux"})
    assert not board.is_empty()
    assert board.requests_to_json() == '[{"device": "linux"}]'
    board.add_questions({"question": "q"})
    assert [entry.item for entry in client.session(board.session).questions.latest(9)] == [{"question": "q"}]


def test_an_item_is_anything_with_to_dict(capsys: pytest.CaptureFixture[str]) -> None:
    board = Blackboard()
    board.add_trajectories(Step())
    board.trajectories.add_memory_item(Step())
    board.add_trajectories(5)
    assert board.trajectories.list_content == [{"step": 7}, {"step": 7}]
    assert capsys.readouterr().out == "Warning: Unsupported data type: <class 'int'> when adding data.\n"


def test_data_may_be_added_to_a_memory_that_is_no_log() -> None:
    memory = Memory()
    Blackboard().add_data({"a": 1}, memory)
    assert memory.to_json() == '[{"a": 1}]'


def test_a_value_that_is_no_json_is_refused_and_nothing_is_written() -> None:
    board = Blackboard()
    loop: list[Any] = []
    loop.append(loop)
    deep: Any = 1
    for _ in range(128):
        deep = [deep]
    for value in (object(), float("nan"), "\ud800", 10**4300, loop, deep):
        with pytest.raises(UnsupportedValue):
            board.add_requests({"value": value})
    board.add_requests({"value": deep[0]})
    board.add_requests({"value": "[" * 200})
    assert board.requests.length == 2


def test_a_value_set_on_an_item_is_written_to_its_entry(client: Client) -> None:
    board = Blackboard()
    held = MemoryItem()
    held.add_values_from_dict({"a": 1, "b": 2})
    board.trajectories.add_memory_item(held)
    board.requests.add_memory_item(held)
    held.set_value("a", None)
    board.trajectories.content[0].set_value("c/~d", [1])
    assert board.trajectories.list_content == [{"a": None, "b": 2, "c/~d": [1]}]
    assert board.requests.list_content == [{"a": None, "b": 2}]
    with pytest.raises(UnsupportedValue):
        held.set_value("b", object())
    assert held.get_values(["b", "x"]) == {"b": 2, "x": None}
    assert client.session(board.session).trajectories.get(1).item["c/~d"] == [1]


def test_an_item_of_a_replaced_log_is_written_to_its_new_entry() -> None:
    board = Blackboard()
    held = MemoryItem()
    held.set_value("a", 1)
    board.trajectories.load([held])
    board.trajectories.load([held])
    held.set_value("a", 2)
    assert board.trajectories.to_list_of_dicts() == [{"a": 2}]
    board.blackboard_from_dict({"trajectories": [{"b": 1}, {"b": 2}]})
    board.trajectories.content[1].set_value("b", 3)
    assert board.trajectories.list_content == [{"b": 1}, {"b": 3}]
    held.set_value("a", 4)
    gone = board.trajectories.content[0]
    board.trajectories.clear()
    gone.set_value("b", 5)
    assert board.blackboard_to_dict() == EMPTY
    assert ufo.refused() == []


def test_an_item_found_far_back_is_written_to_its_entry() -> None:
    board = Blackboard()
    board.requests.from_list_of_dicts([{"n": number} for number in range(1100)])
    board.requests.content[1050].set_value("n", -1)
    assert board.requests.list_content[1049:1052] == [{"n": 1049}, {"n": -1}, {"n": 1051}]


def test_members_with_the_names_of_methods_are_plain_data(client: Client) -> None:
    board = Blackboard()
    item = {"to_dict": 1, "__class__": "x", "__dict__": {"y": 1}, "step": 2, "content": None}
    client.session(board.session).trajectories.append(item)
    assert board.trajectories.list_content == [item]
    assert board.trajectories.filter_memory_from_steps([2]) == [item]
    assert board.trajectories.content[0].step == 2
    board.trajectories.delete_memory_item(2)
    assert board.is_empty()


def test_a_screenshot_keeps_the_rest_of_its_metadata_aside(client: Client) -> None:
    board = Blackboard()
    Path("a.png").write_bytes(PNG)
    whole = {"screenshot application": "WORD", "saving reason": "why", "at": float("nan")}
    board.add_image("a.png", whole)
    board.add_image("a.png", {"metadata": "m"})
    shown = [part.get("text") for part in board.screenshots_to_prompt()]
    assert shown == ["null", None, '"m"', None]
    assert isinstance(board.screenshots.get_latest_item(), ImageMemoryItem)
    (aside,) = client.session(board.session).state["ufo/screenshots"].values()
    assert aside == {"image_path": "a.png", "metadata": {**whole, "at": "nan"}}


def test_a_screenshot_of_20_mib_and_more_is_taken_or_refused_whole() -> None:
    board = Blackboard()
    Path("a.png").write_bytes(PNG + bytes(7 << 20))
    board.add_image("a.png", {"metadata": "m"})
    assert len(board.screenshots.list_content[0]["image_str"]) > 7 << 20
    Path("a.png").write_bytes(PNG + bytes(21 << 20))
    with pytest.raises(ItemTooLarge):
        board.add_image("a.png", {"metadata": "m"})
    assert board.screenshots.length == 1


def test_a_trajectory_may_have_a_key() -> None:
    board = Blackboard()
    board.add_trajectories("k", {"a": 1})
    board.add_trajectories("k", {"key": "mine"})
    board.add_trajectories("k", None)
    assert board.trajectories.list_content == [
        {"key": "k", "a": 1},
        {"key": "k", "value": {"key": "mine"}},
        {"key": "k", "value": None},
    ]


def test_keys_have_values(client: Client) -> None:
    board = Blackboard()
    assert board.get_value("result") is None
    board.add_key_value("result", {"ok": True})
    board.add_key_value("a/b~c", 1)
    with pytest.raises(PreconditionFailed):
        board.add_key_value("result", 1)
    with pytest.raises(PreconditionFailed):
        board.update_value("nothing", 1)
    board.update_value("result", [1.0])
    assert board.get_value("result") == [1.0]
    assert client.session(board.session).state["a"] == {"b~c": 1}
    board.delete_key("result")
    with pytest.raises(PathNotFound):
        board.delete_key("result")
    assert board.get_value("result") is None


def test_a_board_is_saved_to_a_file_and_loaded_from_it() -> None:
    board = Blackboard()
    board.save_to_file("empty.json")
    assert json.loads(Path("empty.json").read_text()) == {**EMPTY, "state": {}}
    board.add_requests("é")
    board.add_key_value("k", "v")
    board.save_to_file("board.json")
    other = Blackboard()
    other.add_requests("gone")
    other.load_from_file("board.json")
    assert other.blackboard_to_dict() == board.blackboard_to_dict()
    assert other.get_value("k") == "v"
    Path("logs.json").write_text('{"requests": []}')
    other.load_from_file("logs.json")
    assert other.is_empty()
    assert other.get_value("k") == "v"


def test_the_documented_calls_of_a_memory_work_on_a_log() -> None:
    board = Blackboard()
    items = [
        {"status": "OK", "cost": 0.5},
        {"results": [{"status": "FAIL"}, 1], "cost": True},
        {"status": "FAIL", "cost": "x", "results": 5},
        {"cost": 1},
    ]
    board.trajectories.from_list_of_dicts(items)
    assert [item.to_dict() for item in board.trajectories.get_latest(2)] == items[2:]
    assert board.trajectories.get_latest(0) == []
    assert [item.to_dict() for item in board.trajectories.get_all()] == items
    assert board.trajectories.filter_by_status("FAIL") == items[1:3]
    assert board.trajectories.get_total_cost() == 1.5


def test_clear_deletes_what_this_board_wrote(session_name: str, client: Client) -> None:
    ufo.configure(session=session_name)
    mine, other = Blackboard(), Blackboard()
    client.session(session_name).requests.append({"by": "curl"})
    other.add_requests("other")
    mine.add_requests("mine")
    mine.add_questions("mine")
    mine.requests.clear()
    mine.requests.clear()
    assert mine.requests.list_content == [{"by": "curl"}, {"text": "other"}]
    mine.clear()
    assert mine.questions.is_empty()
    assert other.requests.length == 2


def test_clear_deletes_everything_where_it_is_set_to(session_name: str, client: Client) -> None:
    ufo.configure(session=session_name, clear="all")
    board = Blackboard()
    client.session(session_name).requests.append({"by": "curl"})
    board.requests.clear()
    assert board.is_empty()
    client.session(session_name).questions.append({"by": "curl"})
    board.clear()
    assert board.is_empty()


def test_items_before_a_malformed_one_do_not_replace_a_board() -> None:
    board = Blackboard()
    board.add_requests("old")
    with pytest.raises(AttributeError):
        board.requests.from_list_of_dicts([{"a": 1}, 5])  # type: ignore[list-item]
    assert board.requests.list_content == [{"text": "old"}]


def test_the_author_of_a_write_is_the_configured_agent(client: Client) -> None:
    ufo.configure(agent="Hôst Agent")
    board = Blackboard()
    board.add_requests("r")
    assert client.session(board.session).requests.get(1).agent == "Hôst Agent"


def test_questions_and_answers_are_loaded_once_a_session(session_name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("qa.jsonl").write_text('{"question":"1"}\n{"question":"2"}\n7\n{"question":"3"}\n{"x":NaN}\n')
    ufo.configure(session=session_name, qa_pair_file="qa.jsonl", qa_pair_num=4)
    first, second = Blackboard(), Blackboard()
    assert first.questions.list_content == [{"question": "2"}, {"question": "3"}]
    assert second.questions.list_content == first.questions.list_content
    assert "Unsupported data type: <class 'int'>" in capsys.readouterr().out
    second.clear()
    assert first.questions.length == 2


def test_a_new_session_begins_with_at_most_999_questions(caplog: pytest.LogCaptureFixture) -> None:
    Path("qa.jsonl").write_text("".join(f'{{"n":{number}}}\n' for number in range(1001)))
    ufo.configure(qa_pair_file="qa.jsonl")
    assert Blackboard().questions.list_content == [{"n": number} for number in range(2, 1001)]
    assert "the last 999 are taken" in caplog.text
    Path("qa.jsonl").write_text('{"n":1}\n{"n":2}\n')
    board = Blackboard()
    board.questions.clear()
    assert board.is_empty()


def test_questions_of_ufos_own_configuration_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "config"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "config_loader.py").write_text(
        "class System:\n    use_customization = True\n    qa_pair_file = 'qa.jsonl'\n    qa_pair_num = 1\n"
        "class Config:\n    system = System\n"
        "def get_ufo_config():\n    return Config\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "site")
    Path("qa.jsonl").write_text('{"question":"1"}\n{"question":"2"}\n')
    assert Blackboard().questions.list_content == [{"question": "2"}]
    import config.config_loader  # type: ignore[import-not-found]

    config.config_loader.System.use_customization = False
    assert Blackboard().is_empty()


def test_is_empty_and_the_prompt_cost_one_trip(client: Client) -> None:
    board = Blackboard()
    board.add_requests("a")
    before = ufo.trips()
    assert not board.is_empty()
    prompt = board.blackboard_to_prompt()
    assert ufo.trips() - before == 1
    client.session(board.session).requests.append({"text": "b"})
    assert board.blackboard_to_prompt() != prompt
    assert not board.is_empty()
    board.add_requests("c")
    assert '"c"' in board.blackboard_to_prompt()[2]["text"]


async def test_fifty_steps_cost_at_most_two_trips_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_blackboard.ufo.channel.REUSE", 60.0)
    board, memory = Blackboard(), Memory()
    Path("a.png").write_bytes(PNG)
    before = ufo.trips()
    prompts = []
    for step in range(50):
        if not board.is_empty():
            prompts.append(board.blackboard_to_prompt())
        await asyncio.sleep(0)
        item = MemoryItem()
        item.add_values_from_dict({"step": step, "action": "click"})
        memory.add_memory_item(item)
        board.add_trajectories({"step": step})
        if step % 5 == 0:
            board.add_image("a.png", {"saving reason": "r"})
        await asyncio.sleep(0)
    assert len(prompts) == 49
    assert json.loads(prompts[-1][3]["text"].partition("\n ")[2]) == [{"step": step} for step in range(49)]
    assert ufo.trips() - before <= 100


async def test_a_sender_that_is_late_sends_the_writes_of_a_turn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    send = Sender._send

    def late(sender: Sender, outbox: Any) -> bool:
        more = send(sender, outbox)
        time.sleep(0.05)
        return more

    monkeypatch.setattr(Sender, "_send", late)
    board = Blackboard()
    board.add_requests("first")
    await asyncio.sleep(0)
    before = ufo.trips()
    for step in range(3):
        board.add_trajectories({"step": step})
        time.sleep(0.1)  # noqa: ASYNC251 - no turn of the loop comes between
    await asyncio.sleep(0)
    assert [row["step"] for row in board.trajectories.list_content] == [0, 1, 2]
    assert ufo.trips() - before == 2


async def test_a_refusal_inside_a_loop_is_kept_aside_and_delays_no_other(outbox: Path) -> None:
    board = Blackboard()
    board.add_requests("before")
    board.add_requests({"big": "x" * (2 << 20)})
    board.add_requests("after")
    assert board.requests.list_content == [{"text": "before"}, {"text": "after"}]
    (refused,) = ufo.refused()
    assert (refused["status"], refused["code"]) == (413, "item-too-large")
    assert ufo.pending() == 0
    ufo.close()
    assert [path.suffix for path in outbox.iterdir()] == [".refused"]


def test_a_refusal_outside_a_loop_is_raised() -> None:
    board = Blackboard()
    with pytest.raises(ItemTooLarge):
        board.add_requests({"big": "x" * (2 << 20)})
    assert board.is_empty()


def test_values_are_written_to_an_item_before_its_append_is_confirmed() -> None:
    board = Blackboard()

    async def step() -> None:
        item = MemoryItem()
        item.set_value("a", 1)
        board.trajectories.add_memory_item(item)
        item.set_value("a", 2)
        board.trajectories.load([item])
        item.set_value("a", 3)

    asyncio.run(step())
    assert board.trajectories.list_content == [{"a": 3}]


def test_settings_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ({"clear": "some"}, {"ask": "x"}, {"block_max": 6.0}, {"block_max": 0}, {"ask_wait": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ufo.configure(**wrong)
    with pytest.raises(TypeError, match="unknown settings: sesion"):
        ufo.configure(sesion="x")
    ufo.configure(url="localhost:8733")
    with pytest.raises(ValueError, match="address must be like"):
        Blackboard()
    monkeypatch.setenv("BLACKBOARD_BLOCK_MAX", "soon")
    with pytest.raises(ValueError, match="BLACKBOARD_BLOCK_MAX is 'soon'"):
        Blackboard()
    monkeypatch.setenv("BLACKBOARD_BLOCK_MAX", "3")
    monkeypatch.setenv("BLACKBOARD_STALE_READS", "off")
    monkeypatch.setenv("BLACKBOARD_SESSION", "named")
    ufo.configure(url=None)
    monkeypatch.setenv("BLACKBOARD_URL", "http://127.0.0.1:1")
    board = Blackboard()
    assert board.session == "named"
    assert not board._channel.settings.stale_reads
    assert board._channel.settings.url == "http://127.0.0.1:1"
