"""Blobs: bytes of a session, stored once by their hash."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from typing_extensions import Unpack

from .._wire import WriteOptions, segment
from ..errors import Problem, UnexpectedAnswer
from ..values import Blob

if TYPE_CHECKING:
    from .session import AsyncSession


class AsyncBlobs:
    """The blobs of a session. One that no item or state value names is deleted after an hour."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def put(
        self, content: bytes, media_type: str = "application/octet-stream", **options: Unpack[WriteOptions]
    ) -> Blob:
        """Store bytes, at most 32 MiB. The hash is checked by the server. `ref` of the result keeps them."""
        digest = hashlib.sha256(content).hexdigest()
        answer = await self._session.request(
            "PUT", f"blobs/{digest}", content=content, media_type=media_type, **options
        )
        raw = answer.json()
        return Blob(raw["sha256"], raw["bytes"], raw["media_type"])

    async def get(self, sha256: str) -> bytes:
        """The bytes of a blob, checked by their hash. Raises BlobNotFound."""
        answer = await self._session.request("GET", f"blobs/{segment(sha256)}")
        if hashlib.sha256(answer.content).hexdigest() != sha256.lower():
            raise UnexpectedAnswer(f"the bytes do not match blob {sha256}", answer.status)
        return answer.content

    async def exists(self, sha256: str) -> bool:
        """Whether the session has a blob."""
        try:
            await self._session.request("HEAD", f"blobs/{segment(sha256)}")
        except Problem as problem:
            if problem.status != 404:
                raise
            return False
        return True
