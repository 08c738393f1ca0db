"""Wire forms: paths, queries, durations and JSON as the contract has them. Nothing here makes a request."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Final
from urllib.parse import quote

from typing_extensions import TypedDict

from .errors import UnsupportedValue

WAIT_PIECE: Final = 25.0
"""The longest wait of one request, in seconds. Most proxies allow more; over those that do not, a wait goes on."""

Seconds = float | timedelta | str
"""A duration: seconds, a timedelta, or text as the contract has it (`500ms`, `30s`, `2h`)."""
Time = datetime | Seconds
"""A time: a datetime with a time zone, text as RFC 3339 has it, or the duration until then."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Unset:
    """The type of `UNSET`: an argument that was not given, where None is a value."""

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset()


class CallOptions(TypedDict, total=False):
    """Options that every call takes which changes something."""

    agent: str | None
    """The writer, instead of the client's agent."""
    if_match: str | None
    """The write is refused unless the target has this tag (`*`: exists)."""
    if_none_match: str | None
    """`*`: the write is refused if the target exists."""
    idempotency_key: str | None
    """The key under which a repeat is done once; made anew for each call where there is none."""
    timeout: float | None
    """The limit of the call with its retries, in seconds, instead of the client's."""


class WriteOptions(CallOptions, total=False):
    """Options that every write takes."""

    claim: int | None
    """The write is refused unless this request is still held under `fence`."""
    fence: int | None


class ReadOptions(TypedDict, total=False):
    """Options that every read of a session takes."""

    at: int | str | None
    """The revision or checkpoint to show."""
    min_revision: int | None
    """The read waits until the session has this revision."""
    agent: str | None
    """The reader, where a memory is its own."""
    timeout: float | None


class WorkOptions(TypedDict, total=False):
    """Options of a worker."""

    ttl: Seconds
    """The time after which a claim expires unless it is renewed, as it is at every third; 60 s by default."""
    wait: Seconds
    """The worker ends when no request came for so long; never by default."""
    agent: str | None
    """The worker's name, instead of the client's agent."""


def unchanged(options: WriteOptions, etag: str | None) -> WriteOptions:
    """Options that refuse a write where the target has another tag than this; None: where there is a target."""
    made = options.copy()
    if etag is None:
        made["if_none_match"] = "*"
    else:
        made["if_match"] = etag
    return made


def segment(name: str) -> str:
    """A name as one segment of a path."""
    if not isinstance(name, str) or not name:
        raise UnsupportedValue(f"a name must be non-empty text, not {name!r}")
    # A client library removes the segments `.` and `..` from an address; encoded, the server refuses them by name.
    return _quoted(name).replace(".", "%2E") if name in (".", "..") else _quoted(name)


def state_path(path: str) -> str:
    """The address of a state path below its session."""
    if not isinstance(path, str):
        raise UnsupportedValue(f"a state path must be text, not {path!r}")
    if not path:
        return "state"
    return "state/" + "/".join(segment(key) if key in (".", "..") else _quoted(key) for key in path.split("/"))


def path(*keys: str) -> str:
    """The state path of keys that may contain `/` and `~`: `path("files", "a/b")` is `files/a~1b`."""
    return "/".join(key.replace("~", "~0").replace("/", "~1") for key in keys)


def _quoted(text: str) -> str:
    try:
        return quote(text, safe="~")
    except UnicodeEncodeError as error:
        raise UnsupportedValue(f"a name with an unpaired surrogate cannot be sent: {text!r}") from error


def query(params: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as text. None is left out; a list becomes the contract's list; a mapping becomes JSON."""
    return {name: _parameter(value) for name, value in params.items() if value is not None}


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return json_text(value)
    if isinstance(value, Mapping):
        return json_text(value)
    if isinstance(value, Iterable):
        return _names([part if isinstance(part, str) else json_text(part) for part in value])
    raise UnsupportedValue(f"a parameter must be text, a number or a list, not {type(value).__name__}")


def _names(names: list[str]) -> str:
    if names and all(name and "," not in name and not name.startswith("[") for name in names):
        return ",".join(names)
    return json_text(names)


def json_text(value: Any) -> str:
    """The JSON text of a value. Raises UnsupportedValue for NaN, surrogates, cycles and types that JSON has not."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UnsupportedValue(f"the value is not JSON: {error}") from error
    return text


def json_bytes(value: Any) -> bytes:
    """The UTF-8 of `json_text`."""
    return json_text(value).encode()


def seconds(duration: Seconds) -> float:
    """A duration in seconds. Raises UnsupportedValue for what is none, and for a negative one."""
    if isinstance(duration, timedelta):
        number = duration.total_seconds()
    elif isinstance(duration, str):
        number = _parsed(duration)
    elif isinstance(duration, (int, float)) and not isinstance(duration, bool):
        number = float(duration)
    else:
        number = math.nan
    if math.isnan(number) or number < 0:
        raise UnsupportedValue(f"a duration must be seconds, a timedelta or text such as '30s', not {duration!r}")
    return number


def duration(value: Seconds) -> str:
    """A duration as the contract writes it, in milliseconds where it has no whole seconds."""
    number = seconds(value)
    if math.isinf(number):
        raise UnsupportedValue("a duration that is sent must be finite")
    return f"{int(number)}s" if number == int(number) else f"{max(round(number * 1000), 1)}ms"


def moment(value: Time) -> str:
    """A time as the contract writes it, or the duration until then. The server checks text."""
    if isinstance(value, str):
        return value
    if not isinstance(value, datetime):
        return duration(value)
    if value.tzinfo is None:
        raise UnsupportedValue(f"a time needs a time zone, as in datetime.now(timezone.utc), not {value!r}")
    return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without those that are None."""
    return {name: value for name, value in values.items() if value is not None}


def _parsed(text: str) -> float:
    for unit, factor in _UNITS.items():
        number = text.removesuffix(unit)
        if number != text and number.isascii() and number.isdecimal():
            return int(number) * factor
    return math.nan


class Backoff:
    """Pauses between tries: doubled up to a limit, with full jitter, and never less than the server asks for."""

    def __init__(self, first: float = 0.05, most: float = 2.0) -> None:
        self._pause = first
        self._most = most

    def pause(self, at_least: float | None = None) -> float:
        """The next pause, in seconds."""
        pause = random.uniform(0, self._pause)
        self._pause = min(2 * self._pause, self._most)
        return pause if at_least is None else at_least + pause
