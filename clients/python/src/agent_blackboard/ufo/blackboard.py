"""Blackboard: UFO's class of that name, on the server.

Every property, method, argument, result, printed text and exception is the original's, but for what the docstrings
say. Each read shows what the server has, once for all four logs; a write is durable before the call returns.
"""

from __future__ import annotations

import base64
import json
import logging
import mimetypes
import os
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..errors import SessionNotFound, UnsupportedValue
from . import asker, process
from .answer import LOGS
from .item import ImageMemoryItem, ImageMemoryItemNames, MemoryItem
from .jsontext import approximate, exact
from .log import Log, checked
from .memory import Memory
from .operation import Operation
from .settings import qa_pairs

__all__ = ["Blackboard", "ImageMemoryItem", "ImageMemoryItemNames", "Memory", "MemoryItem"]

METADATA = "ufo/screenshots"
"""The part of the state that has the metadata of screenshots, whole."""
QA_PAIRS = "ufo/qa_pairs"
"""The value of the state that says that the session has its questions and answers."""

logger = logging.getLogger("agent_blackboard.ufo")
_ABSENT: Any = object()


class Blackboard:
    """The board of a session.

    The session is the configured one, or else a new one for each board. Questions and answers of UFO's configuration
    are loaded once a session.
    """

    def __init__(self) -> None:
        self._channel = process.board_channel()
        self._questions, self._requests, self._trajectories, self._screenshots = (
            Log(self._channel, name) for name in LOGS
        )
        source = qa_pairs()
        if source is not None:
            self._load_qa_pairs(*source)

    @property
    def session(self) -> str:
        """The name of the board's session on the server."""
        return self._channel.session

    @property
    def questions(self) -> Memory:
        """The log of questions and answers."""
        return self._questions

    @property
    def requests(self) -> Memory:
        """The log of requests."""
        return self._requests

    @property
    def trajectories(self) -> Memory:
        """The log of steps."""
        return self._trajectories

    @property
    def screenshots(self) -> Memory:
        """The log of screenshots."""
        return self._screenshots

    def add_data(self, data: Any, memory: Memory) -> None:
        """Append a dictionary, a text, or anything with `to_dict` to a memory. Prints a warning for other data."""
        for item in _items(data):
            memory.add_memory_item(item)

    def add_questions(self, questions: Any) -> None:
        """Append a question. One that `question_asker` put on the board, answered there, is not appended again."""
        if not asker.is_on_board(self._channel, questions):
            self.add_data(questions, self.questions)

    def add_requests(self, requests: Any) -> None:
        """Append a request."""
        self.add_data(requests, self.requests)

    def add_trajectories(self, trajectories: Any, value: Any = _ABSENT) -> None:
        """Append a step. With a second argument the first is its key, as UFO documents it.

        A dictionary without a member `key` is stored as `{"key": key, **value}`, any other value as
        `{"key": key, "value": value}`.
        """
        if value is not _ABSENT:
            whole = isinstance(value, dict) and "key" not in value
            trajectories = {"key": trajectories, **(value if whole else {"value": value})}
        self.add_data(trajectories, self.trajectories)

    def add_image(self, screenshot_path: str = "", metadata: dict[str, Any] | None = None) -> None:
        """Append a screenshot from a file. Prints that a file does not exist, and appends an empty image then.

        The item has `metadata["metadata"]` only, as in the original, so that the prompt is the same. What else there
        is in `metadata` is written with it to the state, under `ufo/screenshots`. Raises AttributeError for None.
        """
        if os.path.exists(screenshot_path):
            image = _data_url(screenshot_path)
        else:
            print(f"Screenshot path {screenshot_path} does not exist.")
            image = ""
        item = ImageMemoryItem()
        item.add_values_from_dict(
            {
                ImageMemoryItemNames.METADATA: metadata.get(ImageMemoryItemNames.METADATA),  # type: ignore[union-attr]
                ImageMemoryItemNames.IMAGE_PATH: screenshot_path,
                ImageMemoryItemNames.IMAGE_STR: image,
            }
        )
        self._screenshots.append([item], *_aside(screenshot_path, metadata))

    def questions_to_json(self) -> str:
        """The questions as a JSON array."""
        return self.questions.to_json()

    def requests_to_json(self) -> str:
        """The requests as a JSON array."""
        return self.requests.to_json()

    def trajectories_to_json(self) -> str:
        """The steps as a JSON array."""
        return self.trajectories.to_json()

    def screenshots_to_json(self) -> str:
        """The screenshots as a JSON array."""
        return self.screenshots.to_json()

    def load_questions(self, file_path: str, last_k: int = -1) -> None:
        """Append the questions of a file, in one request. Prints a warning for a line that is no JSON or no question.

        NaN and Infinity are no JSON here; the original takes them.
        """
        self._questions.append(_questions(self.read_json_file(file_path, last_k)))

    def texts_to_prompt(self, memory: Memory, prefix: str) -> list[dict[str, Any]]:
        """The part of a prompt that shows a memory."""
        return [_text(prefix, memory.list_content)]

    def screenshots_to_prompt(self) -> list[dict[str, Any]]:
        """The parts of a prompt that show the screenshots: two for each."""
        return _images(self.screenshots.list_content)

    def blackboard_to_dict(self) -> dict[str, list[dict[str, Any]]]:
        """The four logs as lists of dictionaries."""
        return self._dictionary()

    def blackboard_to_json(self) -> str:
        """The four logs as JSON."""
        return json.dumps(self.blackboard_to_dict())

    def blackboard_from_dict(self, blackboard_dict: dict[str, list[dict[str, Any]]]) -> None:
        """Replace the four logs; an absent one becomes empty. A malformed dictionary raises and changes nothing."""
        self._replace({log: checked(blackboard_dict.get(log, [])) for log in LOGS})

    def blackboard_to_prompt(self) -> list[dict[str, Any]]:
        """The whole board as the parts of a prompt."""
        board = self._dictionary(kept=True)
        return [
            {"type": "text", "text": "[Blackboard:]"},
            _text("[Questions & Answers:]", board["questions"]),
            _text("[Request History:]", board["requests"]),
            _text("[Step Trajectories Completed Previously:]", board["trajectories"]),
            *_images(board["screenshots"]),
        ]

    def is_empty(self) -> bool:
        """Whether the four logs are empty. A prompt within the next second needs no trip of its own."""
        return not any(self._channel.answer(keep=True).logs.values())

    def clear(self) -> None:
        """Delete what this board has written, or everything with the setting `clear="all"`."""
        self._channel.write(*[operation for log in self._logs() for operation in log.clearing()])

    @staticmethod
    def read_json_file(file_path: str, last_k: int = -1) -> list[Any]:
        """The JSON values of a file, one a line, of its last `last_k` lines or of all; none if there is no file."""
        values: list[Any] = []
        if os.path.exists(file_path):
            with open(file_path, encoding="utf-8") as file:
                lines = file.readlines()
            if last_k != -1:
                lines = lines[-last_k:]
            for line in lines:
                try:
                    values.append(json.loads(line.strip()))
                except json.JSONDecodeError:
                    print(f"Warning: Unable to parse line as JSON: {line}")
        return values

    def add_key_value(self, key: str, value: Any) -> None:
        """Set a new value of the session's state. Raises PreconditionFailed if the key has one.

        A slash in a key leads into an object: `appagent/word/result`. Documented by UFO, and not in its code.
        """
        self._write_state("PUT", key, value, "If-None-Match")

    def get_value(self, key: str) -> Any:
        """A value of the session's state, or None."""
        return self._channel.value(_state_path(key))

    def update_value(self, key: str, value: Any) -> None:
        """Set an existing value of the session's state. Raises PreconditionFailed if there is none."""
        self._write_state("PUT", key, value, "If-Match")

    def delete_key(self, key: str) -> None:
        """Delete a value of the session's state. Raises PathNotFound if there is none."""
        self._write_state("DELETE", key, None, "")

    def save_to_file(self, file_path: str) -> None:
        """Write the four logs and the state to a file, as JSON: whole, or not at all.

        Raises ConnectionFailed while the server is away.
        """
        try:
            board = self._channel.fetch("blackboard", {"include": "state"})
        except SessionNotFound:
            board = {**{log: [] for log in LOGS}, "state": {}}
        unfinished = Path(f"{file_path}.{uuid.uuid4().hex[:12]}.part")
        try:
            unfinished.write_text(json.dumps(board, ensure_ascii=False), encoding="utf-8")
            unfinished.replace(file_path)
        finally:
            unfinished.unlink(missing_ok=True)

    def load_from_file(self, file_path: str) -> None:
        """Replace the four logs, and the state if the file has one, by a file that `save_to_file` wrote."""
        board = json.loads(Path(file_path).read_text(encoding="utf-8"))
        state = {name: value for name, value in board.items() if name == "state"}
        self._replace({log: checked(board.get(log, [])) for log in LOGS}, state)

    def _dictionary(self, *, kept: bool = False) -> dict[str, list[dict[str, Any]]]:
        answer = self._channel.answer(kept=kept).copy()
        return {log: [row.item for row in answer.logs[log]] for log in LOGS}

    def _logs(self) -> tuple[Log, ...]:
        return self._questions, self._requests, self._trajectories, self._screenshots

    def _replace(self, lists: dict[str, list[dict[str, Any]]], state: dict[str, Any] | None = None) -> None:
        operation = Operation(method="PUT", path="blackboard", body=exact({**lists, **(state or {})}))
        for log in self._logs():
            log.replaced(operation, lists[log.name])
        self._channel.write(operation)
        for log in self._logs():
            log.taken(operation)

    def _write_state(self, method: str, key: str, value: Any, condition: str) -> None:
        path = _state_path(key)
        body = exact(value) if method == "PUT" else ""
        self._channel.write(Operation(method=method, path=f"state/{quote(path)}", body=body, condition=condition))
        self._channel.know(path, value)

    def _load_qa_pairs(self, file_path: str, last_k: int) -> None:
        """Append the questions of a file unless the session has had its questions already."""
        items = _questions(self.read_json_file(file_path, last_k))
        self._questions.begin(items, QA_PAIRS, {"file": file_path, "count": len(items)})


def _items(data: Any) -> list[Any]:
    """Data as an item that a memory takes: one or, after a warning, none."""
    if not isinstance(data, (dict, str)):
        if callable(getattr(data, "to_dict", None)):
            return [data]
        print(f"Warning: Unsupported data type: {type(data)} when adding data.")
        return []
    item = MemoryItem()
    item.add_values_from_dict(data if isinstance(data, dict) else {"text": data})
    return [item]


def _questions(lines: list[Any]) -> list[Any]:
    items = []
    for line in lines:
        for item in _items(line):
            try:
                exact(line)
            except UnsupportedValue as error:
                print(f"Warning: Unable to store line as JSON: {line} ({error})")
            else:
                items.append(item)
    return items


def _aside(image_path: str, metadata: Any) -> list[Operation]:
    """The write that keeps what else there is in a screenshot's metadata; its commit is the screenshot's."""
    if not isinstance(metadata, dict) or not metadata.keys() - {ImageMemoryItemNames.METADATA}:
        return []
    key = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:12]}"
    value, _ = approximate({"image_path": image_path, "metadata": metadata})
    return [Operation(body=f'{{"put":"{METADATA}/{key}","value":{value}}}', quiet=True)]


def _data_url(path: str) -> str:
    media_type = mimetypes.guess_type(os.path.basename(path))[0]
    with open(path, "rb") as file:
        encoded = base64.b64encode(file.read()).decode("ascii")
    if media_type is None or not media_type.startswith("image/"):
        logger.debug("%s has no image's suffix; it is sent as image/png", path)
        media_type = "image/png"
    return f"data:{media_type};base64,{encoded}"


def _text(prefix: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "text", "text": f"{prefix}\n {json.dumps(items)}"}


def _images(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for item in items:
        parts.append({"type": "text", "text": json.dumps(item.get(ImageMemoryItemNames.METADATA, ""))})
        parts.append({"type": "image_url", "image_url": {"url": item.get(ImageMemoryItemNames.IMAGE_STR, "")}})
    return parts


def _state_path(key: str) -> str:
    return key.replace("~", "~0")
