"""Minimal shim of the board: each call of the original is one HTTP request by urllib."""

import json
import os
import urllib.error
import urllib.request
import uuid
from typing import Any

URL = os.environ.get("BLACKBOARD_URL", "http://127.0.0.1:8733")
SESSION = os.environ.get("BLACKBOARD_SESSION", uuid.uuid4().hex)


def call(method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{URL}/v1/sessions/{SESSION}/{path}".rstrip("/"), data, method=method)
    if data is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


class Log:
    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def list_content(self) -> list[Any]:
        page = call("GET", f"{self.name}?limit=1000&images=inline")
        return [entry["item"] for entry in page["entries"]] if page else []

    def to_json(self) -> str:
        return json.dumps(self.list_content)

    def clear(self) -> None:
        call("DELETE", self.name)


class Blackboard:
    questions, requests, trajectories, screenshots = map(Log, ("questions", "requests", "trajectories", "screenshots"))

    def add_questions(self, item: Any) -> None:
        call("POST", "questions", item)

    def add_requests(self, item: Any) -> None:
        call("POST", "requests", item)

    def add_trajectories(self, item: Any) -> None:
        call("POST", "trajectories", item)

    def add_image(self, path: str = "", metadata: Any = None) -> None:
        from ufo import utils

        image = utils.encode_image_from_path(path) if os.path.exists(path) else ""
        call("POST", "screenshots", {"metadata": metadata.get("metadata"), "image_path": path, "image_str": image})

    def is_empty(self) -> bool:
        board = call("GET", "")
        return board is None or bool(board["is_empty"])

    def blackboard_to_prompt(self) -> Any:
        return call("GET", "prompt")

    def blackboard_to_dict(self) -> Any:
        return call("GET", "blackboard") or {
            log: [] for log in ("questions", "requests", "trajectories", "screenshots")
        }
