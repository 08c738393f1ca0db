"""Channels of this process: which session a board or a memory belongs to, and their common end.

Where a session is named, all boards and memories of the process are in it. Otherwise the process has a session of its
own for its memories and its first board, and each further board has another one.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import uuid
from typing import Any

from .channel import Channel
from .connection import restart_counting
from .settings import Settings, settings

EXIT_WAIT = 5.0
"""The time for sending what is left when the process ends, in seconds."""

CLOSE_WAIT = 1.0
"""The time for the requests that are under way then, in seconds."""

_lock = threading.RLock()
_channels: dict[tuple[str, str | None, str], Channel] = {}
_own: Channel | None = None
_own_has_board = False


def common_channel() -> Channel:
    """The channel of the process's session."""
    global _own, _own_has_board
    present = settings()
    with _lock:
        if present.session is not None:
            key = (present.url, present.token, present.session)
            if key not in _channels:
                _channels[key] = Channel(present, present.session, own=False)
            channel = _channels[key]
        else:
            if _own is None or (_own.settings.url, _own.settings.token) != (present.url, present.token):
                _own, _own_has_board = _fresh(present), False
            channel = _own
        channel.settings = present
        return channel


def board_channel() -> Channel:
    """The channel of a new board."""
    global _own_has_board
    with _lock:
        channel = common_channel()
        if channel is not _own:
            return channel
        if _own_has_board:
            return _fresh(settings())
        _own_has_board = True
        return channel


def flush(timeout: float = EXIT_WAIT) -> bool:
    """Send everything that is in the outboxes; whether the server has it within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    sent = [channel.flush(max(deadline - time.monotonic(), 0)) for channel in list(_channels.values())]
    return all(sent)


def pending() -> int:
    """The number of writes that the server has neither confirmed nor refused."""
    return sum(channel.waiting() for channel in list(_channels.values()))


def refused() -> list[dict[str, Any]]:
    """The writes that the server has refused for good, with status, code and detail of each."""
    return [row for channel in list(_channels.values()) for row in channel.refused()]


def close() -> None:
    """Flush for at most 5 s, end the boards there are, and release the outboxes.

    What was not sent is adopted by a later process. Boards that are made afterwards begin anew.
    """
    global _own
    flush(EXIT_WAIT)
    with _lock:
        for channel in _channels.values():
            channel.sender.stop()
        deadline = time.monotonic() + CLOSE_WAIT
        for channel in _channels.values():
            channel.close(deadline)
        _channels.clear()
        _own = None


def _fresh(present: Settings) -> Channel:
    session = f"ufo-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:12]}"
    channel = Channel(present, session, own=True)
    _channels[(present.url, present.token, session)] = channel
    return channel


def _before_fork() -> None:
    """Keep all other threads out of the outboxes: SQLite's own locks would stay locked in the child."""
    _lock.acquire()
    for channel in _channels.values():
        channel.changed.acquire()


def _after_fork_in_parent() -> None:
    for channel in _channels.values():
        channel.changed.release()
    _lock.release()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    restart_counting()
    for channel in _channels.values():
        channel.restart()


atexit.register(close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
