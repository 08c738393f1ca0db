"""Artifact service: files of sessions and of users in versions, their contents as blobs.

A version is one value of the state, `artifacts/FILE/NUMBER`, that names its blob. It is written on the condition that
it does not exist, so that of two savers at once each has a number of its own.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any, Final

from google.adk.artifacts import BaseArtifactService, artifact_util
from google.adk.artifacts.base_artifact_service import ArtifactVersion
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types
from pydantic_core import to_jsonable_python
from typing_extensions import override

from .. import AsyncSession, PreconditionFailed
from .. import path as state_path
from .._adapters.names import key_of, text_of
from .service import Service

USER_PREFIX: Final = "user:"
REFERENCES_MAX: Final = 5
"""References from artifact to artifact that one load follows."""
BINARY: Final = "application/octet-stream"
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}", re.ASCII)


class BlackboardArtifactService(Service, BaseArtifactService):
    """Artifacts on boards `adk-artifacts:APP:USER:SESSION`, those of a user on `adk-artifacts:APP:USER`.

    An artifact is the user's if its name begins with `user:`, or if no session is named. Names may be any text. A
    content has at most 32 MiB. Deleting a session of the session service leaves its artifacts.
    """

    PREFIX = "adk-artifacts"

    @override
    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Save a new version; its number, from 0 on. Raises InputValidationError for a part that is no file."""
        part = types.Part.model_validate(artifact) if isinstance(artifact, dict) else artifact
        content, version = _described(part)
        if artifact_util.is_artifact_ref(part):
            _target(version["file_uri"], app_name, user_id, session_id)
        version["custom_metadata"] = to_jsonable_python(custom_metadata or {}, serialize_unknown=True)
        version["create_time"] = time.time()
        board, path = self._place(app_name, user_id, session_id, filename)
        if content is not None:
            media_type = version["mime_type"] or ""
            blob = await board.blobs.put(content, media_type if _MEDIA_TYPE.fullmatch(media_type) else BINARY)
            version["content"] = blob.ref
        number = max(await _versions(board, path), default=-1) + 1
        while True:
            try:
                await board.state.set(f"{path}/{number}", version, if_none_match="*")
            except PreconditionFailed:
                number += 1  # Another saver was faster.
            else:
                return number

    @override
    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        """A version, the latest one unless told, or None. A reference to another artifact is followed."""
        for _ in range(REFERENCES_MAX + 1):
            board, path = self._place(app_name, user_id, session_id, filename)
            _, found = await _version(board, path, version)
            if found is None:
                return None
            uri = found.get("file_uri") or ""
            if not uri.startswith("artifact://"):
                return await _part(board, found)
            target = _target(uri, app_name, user_id, session_id)
            filename, session_id, version = target.filename, target.session_id, target.version
        raise InputValidationError(f"more than {REFERENCES_MAX} references lead from artifact to artifact")

    @override
    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        """The names of a session's artifacts and of its user's, which begin with `user:`."""
        of_user, of_session = await asyncio.gather(
            self._board(app_name, user_id).state.get("artifacts", {}),
            _nothing() if session_id is None else self._board(app_name, user_id, session_id).state.get("artifacts", {}),
        )
        return sorted([*map(text_of, of_session), *(USER_PREFIX + text_of(key) for key in of_user)])

    @override
    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Delete an artifact with all versions; nothing where there is none."""
        board, path = self._place(app_name, user_id, session_id, filename)
        await board.state.delete(path, missing_ok=True)

    @override
    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        """The numbers of all versions, ascending."""
        return sorted(await _versions(*self._place(app_name, user_id, session_id, filename)))

    @override
    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """All versions with their metadata, ascending."""
        board, path = self._place(app_name, user_id, session_id, filename)
        return [_metadata(board, number, raw) for number, raw in sorted((await _versions(board, path)).items())]

    @override
    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        """The metadata of a version, the latest one unless told, or None."""
        board, path = self._place(app_name, user_id, session_id, filename)
        number, found = await _version(board, path, version)
        return None if found is None else _metadata(board, number, found)

    def _place(self, app_name: str, user_id: str, session_id: str | None, filename: str) -> tuple[AsyncSession, str]:
        """The board of an artifact, and its path in the state there."""
        of_user = session_id is None or filename.startswith(USER_PREFIX)
        ids = (app_name, user_id) if of_user or session_id is None else (app_name, user_id, session_id)
        key = key_of(filename.removeprefix(USER_PREFIX) if of_user else filename)
        return self._board(*ids), state_path("artifacts", key)


async def _nothing() -> dict[str, Any]:
    return {}


async def _versions(board: AsyncSession, path: str) -> dict[int, dict[str, Any]]:
    return {int(number): version for number, version in (await board.state.get(path, {})).items()}


async def _version(board: AsyncSession, path: str, number: int | None) -> tuple[int, dict[str, Any] | None]:
    if number is not None:
        return number, await board.state.get(f"{path}/{number}")
    versions = await _versions(board, path)
    latest = max(versions, default=-1)
    return latest, versions.get(latest)


def _described(part: types.Part) -> tuple[bytes | None, dict[str, Any]]:
    """The content of a part and its description."""
    if part.inline_data is not None:
        data = part.inline_data
        if data.data is None:
            raise InputValidationError("an artifact with inline_data has data in it")
        return data.data, {"kind": "bytes", "mime_type": data.mime_type, "display_name": data.display_name}
    if part.text is not None:
        return part.text.encode(), {"kind": "text", "mime_type": "text/plain"}
    if part.file_data is not None and part.file_data.file_uri:
        file = part.file_data
        named = {"file_uri": file.file_uri, "mime_type": file.mime_type, "display_name": file.display_name}
        return None, {"kind": "file", **named}
    raise InputValidationError("an artifact has inline_data, text, or file_data with a file_uri")


async def _part(board: AsyncSession, version: dict[str, Any]) -> types.Part | None:
    """The part that a version was made of."""
    mime_type, display_name = version.get("mime_type"), version.get("display_name")
    if version["kind"] == "file":
        file = types.FileData(file_uri=version["file_uri"], mime_type=mime_type, display_name=display_name)
        return types.Part(file_data=file)
    content = await board.blobs.get(version["content"]["$blob"])
    if version["kind"] == "text":
        return types.Part(text=content.decode())
    if not content and mime_type == BINARY and display_name is None:
        return None  # The framework's mark of a version that a rewind took away.
    return types.Part(inline_data=types.Blob(data=content, mime_type=mime_type, display_name=display_name))


def _metadata(board: AsyncSession, number: int, version: dict[str, Any]) -> ArtifactVersion:
    content = version.get("content")
    address = version["file_uri"] if content is None else f"{board.client.url}{board.path}/blobs/{content['$blob']}"
    return ArtifactVersion(
        version=number,
        canonical_uri=address,
        custom_metadata=version["custom_metadata"],
        create_time=version["create_time"],
        mime_type=version.get("mime_type"),
    )


def _target(uri: str, app_name: str, user_id: str, session_id: str | None) -> artifact_util.ParsedArtifactUri:
    """The artifact that a reference names. Raises InputValidationError outside of its user's and session's scope."""
    target = artifact_util.parse_artifact_uri(uri)
    if target is None:
        raise InputValidationError(f"{uri!r} is not a reference to an artifact")
    if (target.app_name, target.user_id) != (app_name, user_id) or target.session_id not in (None, session_id):
        raise InputValidationError(f"{uri!r} is an artifact of another app, user or session")
    return target
