"""Vectors of the original's classes, played on the drop-in: results, prompts, JSON, prints and exceptions."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from agent_blackboard.ufo import Blackboard, Memory, MemoryItem

VECTORS = Path(__file__).parents[4] / "tests" / "vectors_shared.json"
SURROGATE = "an unpaired surrogate is no Unicode text: refused before anything is sent"
OVERFLOW = "a number beyond a double is Infinity to Python, which is no JSON: refused before anything is sent"
NAN = "NaN and Infinity are no JSON: refused, and a line of a file with them is passed over with a warning"
WHOLE = "a malformed board raises as in the original, and changes nothing instead of half"
DIFFERENCES = {
    "str/lone_high": SURROGATE,
    "str/lone_low": SURROGATE,
    "str/swapped_pair": SURROGATE,
    "num/overflow/-1e400": OVERFLOW,
    "num/overflow/1.8e308": OVERFLOW,
    "num/nonstd/-Infinity": NAN,
    "load/nan_line": NAN,
    "from_dict/null_section": WHOLE,
    "from_dict/section_number": WHOLE,
}


def vectors() -> dict[str, dict[str, Any]]:
    """The vectors by their names."""
    return {vector["name"]: vector for vector in json.loads(VECTORS.read_text("utf-8"))["vectors"]}


class Player:
    """A board and a memory, and the ops of a vector on them."""

    def __init__(self) -> None:
        self.board = Blackboard()
        self.memory = Memory()

    def section(self, name: str) -> Memory:
        return self.memory if name == "memory" else getattr(self.board, name)

    def play(self, op: dict[str, Any]) -> Any:
        """Do an op; a result that the vectors do not tell is None."""
        op = dict(op)
        name = op.pop("op")
        return getattr(self, f"do_{name}", self.on_section(name))(**op)

    def on_section(self, name: str) -> Any:
        def call(section: str, **texts: str) -> Any:
            log = self.section(section)
            arguments = [json.loads(text) for text in texts.values()]
            member = getattr(log, name)
            return member(*arguments) if callable(member) else member

        return call

    def do_add_questions(self, data_text: str) -> None:
        self.board.add_questions(json.loads(data_text))

    def do_add_requests(self, data_text: str) -> None:
        self.board.add_requests(json.loads(data_text))

    def do_add_trajectories(self, data_text: str) -> None:
        self.board.add_trajectories(json.loads(data_text))

    def do_blackboard_from_dict(self, data_text: str) -> None:
        self.board.blackboard_from_dict(json.loads(data_text))

    def do_clear(self) -> None:
        self.board.clear()

    def do_add_image(
        self, path: str, file_base64: str | None = None, metadata_text: str | None = None, make_dir: bool = False
    ) -> None:
        if make_dir:
            Path(path).mkdir()
        if file_base64 is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(base64.b64decode(file_base64))
        self.board.add_image(path, None if metadata_text is None else json.loads(metadata_text))

    def do_load_questions(
        self, path: str = "qa.jsonl", file_text: str | None = None, file_base64: str | None = None, last_k: int = -1
    ) -> None:
        if file_text is not None:
            Path(path).write_bytes(file_text.encode())
        if file_base64 is not None:
            Path(path).write_bytes(base64.b64decode(file_base64))
        self.board.load_questions(path, last_k)

    def do_memory_clear(self, section: str) -> None:
        self.section(section).clear()

    def do_memory_to_json(self, section: str) -> str:
        return self.section(section).to_json()

    def do_get_latest_item(self, section: str) -> Any:
        latest = self.section(section).get_latest_item()
        return None if latest is None else latest.to_dict()

    def do_add_memory_item(self, section: str, data_text: str) -> None:
        self.section(section).add_memory_item(item(json.loads(data_text)))

    def do_load(self, section: str, data_text: str) -> None:
        self.section(section).load([item(values) for values in json.loads(data_text)])

    def end(self, expected: dict[str, Any]) -> dict[str, Any]:
        """The board as the vector's `expect` shows it."""
        board = self.board
        names = ("questions", "requests", "trajectories", "screenshots")
        found: dict[str, Any] = {
            "is_empty": board.is_empty(),
            "prompt_text": json.dumps(board.blackboard_to_prompt()),
            "json": board.blackboard_to_json(),
            **{f"{name}_json": getattr(board, f"{name}_to_json")() for name in names},
            "lengths": {name: self.section(name).length for name in names},
        }
        if "memory_json" in expected:
            found["memory_json"] = self.memory.to_json()
            found["memory_list_text"] = json.dumps(self.memory.list_content)
            found["memory_length"] = self.memory.length
        return found


def item(values: dict[str, Any]) -> MemoryItem:
    """An item with these values."""
    made = MemoryItem()
    made.from_dict(values)
    return made


def outcome(player: Player, op: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The result of an op as the vectors tell it."""
    found: dict[str, Any] = {}
    try:
        value = player.play(op)
    except Exception as error:
        found["raises"] = f"{type(error).__name__}: {error}"
    else:
        if op["op"].startswith(("filter_", "get_", "length", "is_empty", "list_", "to_list")):
            found["value_text"] = json.dumps(value)
        elif op["op"] == "memory_to_json":
            found["value_string"] = value
    if printed := capsys.readouterr().out:
        found["stdout"] = printed
    return found


@pytest.mark.usefixtures("drop_in")
@pytest.mark.parametrize("name", vectors())
def test_a_vector_of_the_original_agrees_unless_it_is_listed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    vector = vectors()[name]
    player = Player()
    results = [outcome(player, op, capsys) for op in vector["ops"]]
    for found, expected in zip(results, vector["results"], strict=True):
        if expected.pop("parse_error", False):
            # It is of json.loads, before the board is called; the text is the interpreter's.
            assert found.pop("raises").partition(":")[0] == expected.pop("raises").partition(":")[0]
        if "Exceeds the limit" in expected.get("raises", ""):
            # The rest of the text is the interpreter's as well, and differs by its version.
            found["raises"], expected["raises"] = (text["raises"][:30] for text in (found, expected))
    agrees = (results, player.end(vector["expect"])) == (vector["results"], vector["expect"])
    if name in DIFFERENCES:
        assert not agrees, f"{name} is listed, and does not differ"
    else:
        assert results == vector["results"]
        assert player.end(vector["expect"]) == vector["expect"]


def test_the_listed_differences_are_vectors() -> None:
    assert DIFFERENCES.keys() <= vectors().keys()
