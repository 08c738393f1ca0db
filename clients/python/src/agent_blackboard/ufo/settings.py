"""Settings of the drop-in: those of `configure(…)`, else the environment's, else defaults.

Each setting has an environment variable, `BLACKBOARD_` and its name in capitals. A new board takes the settings as
they stand; boards of one session have those of the last of them.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

Clear = Literal["own", "all"]
Ask = Literal["terminal", "board"]

URL = "http://127.0.0.1:8733"


@dataclass(frozen=True)
class Settings:
    """Settings of the drop-in; times are in seconds."""

    url: str = URL
    token: str | None = field(default=None, repr=False)
    session: str | None = None
    """The session of all boards of the process. Without one each board has a new session of its own."""
    agent: str | None = None
    """The agent named as the author of what is written."""
    outbox: Path | None = None
    """The directory of the outboxes."""
    block_max: float = 4.5
    """The longest time that a call waits for the server."""
    stale_reads: bool = True
    """While the server is away, whether reads answer from the last answer instead of raising ConnectionFailed."""
    clear: Clear = "own"
    """The entries that `clear()` of a board or of one of its logs deletes: those that this board wrote, or all."""
    qa_pair_file: str | None = None
    """A file of questions and answers, a JSON object a line, that each session begins with."""
    qa_pair_num: int = -1
    """The number of lines from the end of that file; -1 is all of them."""
    ask: Ask = "terminal"
    """The place where UFO's `question_asker` asks, where the runner has aliased it."""
    ask_wait: float = 600.0
    """The time that a question on the board waits for its answer."""
    ask_default: str | None = None
    """The answer of a question that was not answered in that time."""

    def __post_init__(self) -> None:
        """Refuse values that have no meaning."""
        for name, choices in (("clear", get_args(Clear)), ("ask", get_args(Ask))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it takes one of {', '.join(choices)}")
        if not 0 < self.block_max <= 5:
            raise ValueError(f"block_max is {self.block_max}; it takes more than 0 and at most 5 seconds")
        if self.ask_wait <= 0:
            raise ValueError(f"ask_wait is {self.ask_wait}; it takes more than 0 seconds")

    def outbox_directory(self) -> Path:
        """The directory of the outboxes, under the user's state directory unless it is set."""
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return self.outbox or Path(state) / "agent-blackboard"


_configured: dict[str, Any] = {}


def configure(**changes: Any) -> None:
    """Set settings of the process, for boards and memories that are made from now on. None restores the default."""
    known = {setting.name for setting in fields(Settings)}
    if unknown := sorted(changes.keys() - known):
        raise TypeError(f"unknown settings: {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    if changes.get("outbox") is not None:
        changes["outbox"] = Path(changes["outbox"])
    merged = {name: value for name, value in {**_configured, **changes}.items() if value is not None}
    replace(_environment(), **merged)
    _configured.clear()
    _configured.update(merged)


def settings() -> Settings:
    """The settings as they stand."""
    return replace(_environment(), **_configured)


def qa_pairs() -> tuple[str, int] | None:
    """The file of questions and answers, and how many of its last lines to load: configured, else as UFO's config."""
    present = settings()
    if present.qa_pair_file is not None:
        return present.qa_pair_file, present.qa_pair_num
    try:
        loader = importlib.import_module("config.config_loader")
    except ImportError:
        return None
    get_ufo_config = getattr(loader, "get_ufo_config", None)
    system = get_ufo_config().system if get_ufo_config else None
    if not getattr(system, "use_customization", False):
        return None
    return str(getattr(system, "qa_pair_file", "")), int(getattr(system, "qa_pair_num", -1))


def _environment() -> Settings:
    values: dict[str, Any] = {}
    for setting in fields(Settings):
        variable = f"BLACKBOARD_{setting.name.upper()}"
        if text := os.environ.get(variable):
            try:
                values[setting.name] = _READERS.get(setting.name, str)(text)
            except ValueError as error:
                raise ValueError(f"{variable} is {text!r}, which is not a number") from error
    return Settings(**values)


def _switch(text: str) -> bool:
    return text.lower() not in ("0", "false", "no", "off")


_READERS: dict[str, Any] = {
    "outbox": Path,
    "block_max": float,
    "stale_reads": _switch,
    "qa_pair_num": int,
    "ask_wait": float,
}
