"""Asker: UFO's `question_asker` with the person elsewhere.

A question goes on the board of the process's session. A person answers there, by the page, the command line or any
client; the agent goes on with the answer. The server gives the default after the time limit.
"""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlencode

from .. import Answer
from .._wire import WAIT_PIECE
from ..errors import ConditionNotMet
from . import process
from .channel import Channel
from .connection import misdirected, unreached
from .jsontext import exact
from .log import appending
from .operation import Operation
from .place import Place
from .settings import Settings, settings

PAUSE = 0.5
"""The pause before the next request while the server is away, in seconds."""
AFTER = 2.0
"""The time for the server to give the default after the time limit, in seconds."""


def question_asker(question: str, index: int = 1) -> str:
    """Ask on the board and wait for the answer. `index` is UFO's and has no effect.

    Returns "" for a question that was skipped, or not answered in `ask_wait` seconds without `ask_default`; UFO passes
    over it then. Blocks as the original does at its prompt. Raises the Problem with which the server refused.
    """
    present = settings()
    channel = process.common_channel()
    operation = _asking(channel, question, present)
    channel.store(operation)
    channel.sender.wake()
    asked = _answered(channel, operation, time.monotonic() + present.ask_wait + AFTER)
    answer = present.ask_default if asked is None else asked.get("answer")
    answer = answer if isinstance(answer, str) else ""
    if answer.strip():
        channel.asked.append((question, answer))
    return answer


def is_on_board(channel: Channel, data: Any) -> bool:
    """Whether a question with its answer is one that `question_asker` has just put on this board."""
    if not isinstance(data, dict) or data.keys() != {"question", "answer"}:
        return False
    pair = (data["question"], data["answer"])
    if pair not in channel.asked:
        return False
    channel.asked.remove(pair)
    return True


def _asking(channel: Channel, question: str, present: Settings) -> Operation:
    terms = {"expires": f"{max(round(present.ask_wait * 1000), 1)}ms"}
    if present.ask_default is not None:
        terms["default"] = present.ask_default
    text = exact({"question": question})
    operation = Operation(method="POST", path=f"questions?{urlencode(terms)}", body=text)
    operation.places = [Place(channel, "questions", operation)]
    operation.effect = appending(operation.places[0], text)
    return operation


def _answered(channel: Channel, operation: Operation, deadline: float) -> dict[str, Any] | None:
    """The question once it is answered, skipped or expired; None where the time is over before."""
    with channel.changed:
        channel.changed.wait_for(
            lambda: operation.finished or misdirected(channel.sender.failure), deadline - time.monotonic()
        )
    if not operation.finished:
        channel.raise_misdirected()
    if operation.error is not None:
        raise operation.error
    while (seq := operation.places[0].seq) is not None and (rest := deadline - time.monotonic()) > 0:
        try:
            return dict(_poll(channel, seq, min(rest, WAIT_PIECE)).json()["item"])
        except ConditionNotMet:
            continue
        except Exception as error:
            if not unreached(error):
                raise
            time.sleep(min(PAUSE, rest))
    return None


def _poll(channel: Channel, seq: int, seconds: float) -> Answer:
    params = {"until": "answered"}
    return channel.connection.ask("GET", channel.session, f"questions/{seq}", params=params, wait=seconds)
