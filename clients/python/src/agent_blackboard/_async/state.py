"""State: one JSON document of a session, addressed by path."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import Unpack

from .._backend import AsyncStateItems, async_sleep
from .._wire import (
    UNSET,
    Backoff,
    ReadOptions,
    Seconds,
    Unset,
    WriteOptions,
    duration,
    json_text,
    seconds,
    state_path,
    unchanged,
)
from ..errors import NotFound, PathNotFound, PreconditionFailed, SessionNotFound
from ..values import StateValue, Written, checked_tag, written
from .logs import MERGE

if TYPE_CHECKING:
    from .session import AsyncSession

T = TypeVar("T")
JSON = "application/json"


class AsyncTries:
    """The repetitions of a read, a change and a conditional write, until a time limit."""

    def __init__(self, limit: float) -> None:
        self._deadline = time.monotonic() + limit
        self._backoff = Backoff(0.01, 0.5)

    async def pause(self, refused: PreconditionFailed) -> None:
        """Pause before the next try; raises the refusal where there is no time for one."""
        pause = self._backoff.pause()
        if time.monotonic() + pause >= self._deadline:
            raise refused
        await async_sleep(pause)


class AsyncState(AsyncStateItems):
    """The state of a session. A path is keys with `/` between them; `agent_blackboard.path` makes one of any keys."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def read(self, path: str = "", **options: Unpack[ReadOptions]) -> StateValue:
        """A value with its tag. Raises PathNotFound or SessionNotFound."""
        answer = await self._session.read(state_path(path), **options)
        return StateValue(answer.json(), answer.etag, answer.revision)

    async def get(self, path: str = "", default: Any = None, **options: Unpack[ReadOptions]) -> Any:
        """A value, or `default` where there is none. The whole document where no path is given."""
        try:
            return (await self.read(path, **options)).value
        except (PathNotFound, SessionNotFound):
            return default

    async def set(
        self, path: str, value: Any, *, ttl: Seconds | None = None, **options: Unpack[WriteOptions]
    ) -> Written:
        """Set a value, making the objects above it. With `ttl` it is deleted after that time unless set again."""
        params = {"ttl": None if ttl is None else duration(ttl)}
        answer = await self._session.request("PUT", state_path(path), json=value, params=params, **options)
        return written(answer)

    async def delete(
        self, path: str = "", *, missing_ok: bool = False, **options: Unpack[WriteOptions]
    ) -> Written | None:
        """Delete a value; None where there was none and that is right. Raises PathNotFound."""
        try:
            return written(await self._session.request("DELETE", state_path(path), **options))
        except (PathNotFound, SessionNotFound):
            if not missing_ok:
                raise
            return None

    async def merge(self, path: str, patch: Any, **options: Unpack[WriteOptions]) -> Written:
        """Merge into a value (RFC 7396): None deletes a member."""
        answer = await self._session.request("PATCH", state_path(path), json=patch, media_type=MERGE, **options)
        return written(answer)

    async def add(self, path: str, number: float = 1, **options: Unpack[WriteOptions]) -> Any:
        """Add to a number atomically; the new value. Raises NotANumber."""
        return await self._change(path, {"add": number}, options)

    async def append(self, path: str, values: Iterable[Any], **options: Unpack[WriteOptions]) -> Any:
        """Append to an array atomically, making it; the new value."""
        return await self._change(path, {"append": list(values)}, options)

    async def _change(self, path: str, change: Mapping[str, Any], options: WriteOptions) -> Any:
        answer = await self._session.request("PATCH", state_path(path), json=change, media_type=JSON, **options)
        return answer.json()["value"]

    def tries(self, options: WriteOptions) -> AsyncTries:
        """Repetitions within the time limit of a call."""
        return AsyncTries(options.get("timeout") or self._session.client.timeout)

    async def update(
        self,
        path: str,
        change: Callable[[Any], T],
        default: Any = UNSET,
        *,
        ttl: Seconds | None = None,
        **options: Unpack[WriteOptions],
    ) -> T:
        """Read a value, call `change` with it, and write the result unless it was changed meanwhile; the new value.

        `default` stands for a value that does not exist. Reading, calling and writing are repeated until the write
        succeeds; PreconditionFailed is raised where it did not within the time limit, and UnexpectedAnswer where a
        proxy changes tags so that none succeeds.
        """
        tries = self.tries(options)
        found = await self._found(path, default)
        while True:
            made = change(found.value)
            try:
                await self.set(path, made, ttl=ttl, **unchanged(options, found.etag))
            except PreconditionFailed as refused:
                await tries.pause(refused)
                last, found = found.etag, await self._present(path, default, refused)
                if found.etag is not None:
                    checked_tag(found.etag, last)
            else:
                return made

    async def _present(self, path: str, default: Any, refused: PreconditionFailed) -> StateValue:
        """The present value: that of the 412 if it has one, else a new read."""
        if refused.etag is not None and "current" in refused.body:
            return StateValue(refused.current, refused.etag, refused.revision)
        return await self._found(path, default, refused.revision)

    async def _found(self, path: str, default: Any, min_revision: int | None = None) -> StateValue:
        try:
            found = await self.read(path, min_revision=min_revision)
        except NotFound:
            if isinstance(default, Unset):
                raise
            return StateValue(copy.deepcopy(default), None, None)
        checked_tag(found.etag)
        return found

    async def wait(self, path: str, until: str = "exists", *, equals: Any = UNSET, wait: Seconds = 60.0) -> Any:
        """The value when it `exists`, is `absent` (None) or equals a value. Raises ConditionNotMet, a TimeoutError."""
        condition = until if isinstance(equals, Unset) else f"equals:{json_text(equals)}"
        deadline = time.monotonic() + seconds(wait)
        try:
            answer = await self._session.until(state_path(path), condition, wait)
        except SessionNotFound:
            if condition == "absent":
                return None
            await self._session.until("", "exists", max(deadline - time.monotonic(), 0.0))
            left = max(deadline - time.monotonic(), 0.0)
            answer = await self._session.until(state_path(path), condition, left)
        return json.loads(answer.content) if answer.content else None
