"""History: checkpoints, differences, the audit and archives."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import httpx
from typing_extensions import Unpack

from .._wire import ReadOptions, WriteOptions, segment
from ..errors import ConnectionFailed
from ..values import Written, written
from .transport import AsyncCall

if TYPE_CHECKING:
    from .session import AsyncSession

EXPORT_TIMEOUT = 600.0
KINDS = ("added", "changed", "removed")


class AsyncCheckpoints:
    """The checkpoints of a session: names for revisions."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def create(self, name: str, **options: Unpack[WriteOptions]) -> Written:
        """Name the present revision."""
        return written(await self._session.request("POST", "checkpoints", json={"name": name}, **options))

    async def list(self) -> AsyncIterator[dict[str, Any]]:
        """All checkpoints: name, revision, at."""
        async for checkpoint in _paged(self._session, "checkpoints", {}, ("checkpoints",)):
            yield checkpoint

    async def get(self, name: str, **options: Unpack[ReadOptions]) -> dict[str, Any]:
        """One checkpoint. Raises CheckpointNotFound."""
        return dict((await self._session.read(f"checkpoints/{segment(name)}", **options)).json())

    async def delete(self, name: str, **options: Unpack[WriteOptions]) -> Written:
        """Delete a checkpoint; its revision stays."""
        return written(await self._session.request("DELETE", f"checkpoints/{segment(name)}", **options))


async def diff(session: AsyncSession, from_: int | str, to: int | str | None) -> AsyncIterator[dict[str, Any]]:
    """The changes between two revisions, each with its kind: `added`, `changed` or `removed`."""
    async for change in _paged(session, "diff", {"from": from_, "to": to}, KINDS):
        yield change


async def audit(session: AsyncSession, trace: str | None) -> AsyncIterator[dict[str, Any]]:
    """The commits that are kept."""
    async for commit in _paged(session, "audit", {"trace": trace}, ("commits",)):
        yield commit


async def _paged(
    session: AsyncSession, path: str, params: dict[str, Any], names: tuple[str, ...]
) -> AsyncIterator[dict[str, Any]]:
    after = None
    while True:
        page = (await session.request("GET", path, params={**params, "after": after})).json()
        for name in names:
            for raw in page[name]:
                yield {"kind": name, **raw} if len(names) > 1 else raw
        after = page["next"]
        if not page["more"]:
            return


async def export_archive(session: AsyncSession, path: str | os.PathLike[str]) -> None:
    """Write a session's archive beside `path`, and move it there when it is complete."""
    call = AsyncCall("GET", f"{session.path}/archive", timeout=EXPORT_TIMEOUT)
    deadline = time.monotonic() + EXPORT_TIMEOUT
    folder, name = os.path.split(os.path.abspath(path))
    handle, part = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
    last = b""
    try:
        with os.fdopen(handle, "wb") as file:
            async with session.client.transport.stream(call) as response:
                async for block in response.aiter_bytes():
                    file.write(block)
                    last = (last + block)[-1024:]
                    if time.monotonic() > deadline:
                        raise httpx.ReadTimeout("the archive did not end in time")
            file.flush()
            os.fsync(file.fileno())
        if not last.rstrip(b"\n").rpartition(b"\n")[2].startswith(b'{"end":'):
            raise ConnectionFailed(f"the archive of session {session.name!r} broke off")
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise
