"""UFO's blackboard behind FastAPI, as Python lists.

The lists and the prompt do what UFO's Memory and Blackboard do, in our own few lines. Nothing is
durable: when this process ends, its boards are gone.
"""

import json
from collections import defaultdict
from datetime import datetime, timezone
from typing import Any

from fastapi import FastAPI, Response

HEADINGS = {
    "questions": "[Questions & Answers:]",
    "requests": "[Request History:]",
    "trajectories": "[Step Trajectories Completed Previously:]",
}


class Item:
    """A dictionary whose members are attributes too, as in UFO."""

    def __init__(self, values: dict[str, Any]):
        self._names = []
        for name, value in values.items():
            setattr(self, name, value)
            self._names.append(name)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}


class Board:
    """The lists of one session."""

    def __init__(self):
        self.logs: dict[str, list[Item]] = {name: [] for name in HEADINGS}

    def append(self, log: str, values: dict[str, Any]) -> int:
        self.logs[log].append(Item(values))
        return len(self.logs[log])

    def prompt(self) -> list[dict[str, str]]:
        parts = [{"type": "text", "text": "[Blackboard:]"}]
        for name, heading in HEADINGS.items():
            items = [item.to_dict() for item in self.logs[name]]
            parts.append({"type": "text", "text": f"{heading}\n {json.dumps(items)}"})
        return parts


app = FastAPI()
boards: dict[str, Board] = defaultdict(Board)


@app.post("/v1/sessions/{session}/{log}", status_code=201)
async def append(session: str, log: str, item: dict[str, Any]) -> dict[str, Any]:
    seq = boards[session].append(log, item)
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return {"revision": seq, "entries": [{"seq": seq, "at": at}]}


@app.get("/v1/sessions/{session}/prompt")
async def prompt(session: str) -> Response:
    return Response(json.dumps(boards[session].prompt()), media_type="application/json")


@app.get("/v1/sessions/{session}")
async def counts(session: str) -> dict[str, Any]:
    return {"counts": {name: len(items) for name, items in boards[session].logs.items()}}
