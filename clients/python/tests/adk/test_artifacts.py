"""The artifact service against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from google.adk.artifacts import artifact_util
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from agent_blackboard import BodyTooLarge, UnsupportedValue
from agent_blackboard.adk import BlackboardArtifactService, BlackboardSessionService


@pytest.fixture
async def service(url: str) -> AsyncIterator[BlackboardArtifactService]:
    async with BlackboardArtifactService(url=url) as service:
        yield service


@pytest.fixture
def user(session_name: str) -> dict[str, str]:
    return {"app_name": session_name, "user_id": "u"}


@pytest.fixture
def file(user: dict[str, str]) -> dict[str, str]:
    return {**user, "session_id": "s", "filename": "report.csv"}


def data(content: bytes, mime_type: str = "text/csv", **options: Any) -> types.Part:
    return types.Part(inline_data=types.Blob(data=content, mime_type=mime_type, **options))


PARTS = [
    data(b"a,b\n"),
    data(b"\x00\xff" * 1000, "image/png", display_name="é.png"),
    data(b"", "text/plain"),
    data(b"x", "no media type at all"),
    types.Part(inline_data=types.Blob(data=b"untyped")),
    types.Part(text="日本\n"),
    types.Part(text=""),
    types.Part(file_data=types.FileData(file_uri="gs://bucket/file", mime_type="video/mp4")),
]


@pytest.mark.parametrize("part", PARTS, ids=range(len(PARTS)))
async def test_a_part_comes_back_as_it_was_saved(
    service: BlackboardArtifactService, file: dict[str, str], part: types.Part
) -> None:
    assert await service.load_artifact(**file) is None
    assert await service.save_artifact(**file, artifact=part) == 0
    assert await service.load_artifact(**file) == part
    as_dictionary = part.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert await service.save_artifact(**file, artifact=as_dictionary) == 1
    assert await service.load_artifact(**file) == part


async def test_versions_are_numbered_from_0(service: BlackboardArtifactService, file: dict[str, str]) -> None:
    assert await service.list_versions(**file) == []
    assert await service.list_artifact_versions(**file) == []
    assert await service.get_artifact_version(**file) is None
    for number in range(12):
        assert await service.save_artifact(**file, artifact=data(b"%d" % number)) == number
    assert await service.list_versions(**file) == list(range(12))
    assert await service.load_artifact(**file) == data(b"11")
    assert await service.load_artifact(**file, version=2) == data(b"2")
    assert await service.load_artifact(**file, version=12) is None
    assert await service.load_artifact(**file, version=-1) is None
    assert await service.get_artifact_version(**file, version=12) is None


async def test_a_version_has_its_metadata(service: BlackboardArtifactService, file: dict[str, str]) -> None:
    await service.save_artifact(**file, artifact=data(b"a"), custom_metadata={"from": {"a": [1]}})
    await service.save_artifact(**file, artifact=types.Part(text="b"))
    uri = "gs://bucket/file"
    await service.save_artifact(**file, artifact=types.Part(file_data=types.FileData(file_uri=uri)))
    first, second, third = await service.list_artifact_versions(**file)
    assert [version.version for version in (first, second, third)] == [0, 1, 2]
    assert (first.mime_type, first.custom_metadata) == ("text/csv", {"from": {"a": [1]}})
    assert (second.mime_type, second.custom_metadata) == ("text/plain", {})
    assert (third.mime_type, third.canonical_uri) == (None, uri)
    assert first.create_time <= second.create_time <= third.create_time
    assert await service.get_artifact_version(**file) == third
    assert await service.get_artifact_version(**file, version=0) == first


async def test_the_uri_of_a_content_is_its_address_on_the_server(
    service: BlackboardArtifactService, file: dict[str, str]
) -> None:
    await service.save_artifact(**file, artifact=data(b"a,b\n"))
    version = await service.get_artifact_version(**file)
    assert version is not None
    async with httpx.AsyncClient() as http:
        answer = await http.get(version.canonical_uri)
    assert (answer.content, answer.headers["content-type"]) == (b"a,b\n", "text/csv")


async def test_of_savers_at_once_each_has_a_version(service: BlackboardArtifactService, file: dict[str, str]) -> None:
    numbers = await asyncio.gather(*[service.save_artifact(**file, artifact=data(b"%d" % n)) for n in range(10)])
    assert sorted(numbers) == list(range(10))
    for content, number in enumerate(numbers):
        assert await service.load_artifact(**file, version=number) == data(b"%d" % content)


async def test_artifacts_of_a_user_are_seen_in_all_sessions(
    service: BlackboardArtifactService, user: dict[str, str]
) -> None:
    await service.save_artifact(**user, session_id="1", filename="user:ours", artifact=data(b"ours"))
    await service.save_artifact(**user, session_id="1", filename="mine", artifact=data(b"mine"))
    await service.save_artifact(**user, filename="no session", artifact=data(b"none"))
    assert await service.list_artifact_keys(**user, session_id="1") == ["mine", "user:no session", "user:ours"]
    assert await service.list_artifact_keys(**user, session_id="2") == ["user:no session", "user:ours"]
    assert await service.list_artifact_keys(**user) == ["user:no session", "user:ours"]
    assert await service.list_artifact_keys(app_name=user["app_name"], user_id="v", session_id="1") == []
    for session_id in ("1", "2", None):
        assert await service.load_artifact(**user, session_id=session_id, filename="user:ours") == data(b"ours")
        assert await service.load_artifact(**user, session_id=session_id, filename="user:no session") == data(b"none")
    assert await service.load_artifact(**user, session_id="2", filename="mine") is None
    assert await service.load_artifact(**user, session_id="user", filename="ours") is None


async def test_a_deleted_artifact_is_gone_with_its_versions(
    service: BlackboardArtifactService, file: dict[str, str]
) -> None:
    await service.delete_artifact(**file)
    for number in range(2):
        await service.save_artifact(**file, artifact=data(b"%d" % number))
    nested = {**file, "filename": "report.csv/1"}
    await service.save_artifact(**nested, artifact=data(b"nested"))
    await service.delete_artifact(**file)
    assert await service.load_artifact(**file) is None
    assert await service.list_versions(**file) == []
    assert await service.load_artifact(**nested) == data(b"nested")
    assert await service.save_artifact(**file, artifact=data(b"anew")) == 0
    await service.delete_artifact(**file)
    await service.delete_artifact(**file)


async def test_artifacts_stay_when_their_session_is_deleted(
    service: BlackboardArtifactService, file: dict[str, str], url: str
) -> None:
    ids = {name: file[name] for name in ("app_name", "user_id", "session_id")}
    async with BlackboardSessionService(url=url) as sessions:
        await sessions.create_session(**ids)
        await service.save_artifact(**file, artifact=data(b"a"))
        await sessions.delete_session(**ids)
    assert await service.load_artifact(**file) == data(b"a")


@pytest.mark.parametrize("filename", ["", ".", "..", "../../x", "/etc/passwd", "a/b", "C:\\x", "%2F", "\n", "é" * 500])
async def test_any_text_is_a_file_name(service: BlackboardArtifactService, user: dict[str, str], filename: str) -> None:
    for name in (filename, "user:" + filename):
        await service.save_artifact(**user, session_id="s", filename=name, artifact=data(name.encode()))
    for name in (filename, "user:" + filename):
        assert await service.load_artifact(**user, session_id="s", filename=name) == data(name.encode())
    assert await service.list_artifact_keys(**user, session_id="s") == sorted([filename, "user:" + filename])


async def test_a_reference_is_followed_within_its_scope(
    service: BlackboardArtifactService, file: dict[str, str]
) -> None:
    app, user, session = file["app_name"], file["user_id"], file["session_id"]
    await service.save_artifact(**file, artifact=data(b"target"))

    def reference(*place: Any) -> types.Part:
        return types.Part(file_data=types.FileData(file_uri=artifact_util.get_artifact_uri(*place)))

    link = {**file, "filename": "link"}
    await service.save_artifact(**link, artifact=reference(app, user, "report.csv", 0, session))
    assert await service.load_artifact(**link) == data(b"target")
    for place in [("other", user, "f", 0, session), (app, "v", "f", 0, session), (app, user, "f", 0, "t")]:
        with pytest.raises(InputValidationError):
            await service.save_artifact(**link, artifact=reference(*place))
    with pytest.raises(InputValidationError):
        await service.save_artifact(
            **link, artifact=types.Part(file_data=types.FileData(file_uri="artifact://nonsense"))
        )
    circle = {**file, "filename": "circle"}
    await service.save_artifact(**circle, artifact=reference(app, user, "circle", 0, session))
    with pytest.raises(InputValidationError):
        await service.load_artifact(**circle)
    await service.save_artifact(**link, artifact=reference(app, user, "nothing", 0, session))
    assert await service.load_artifact(**link) is None


async def test_a_version_that_a_rewind_took_away_is_none(
    service: BlackboardArtifactService, file: dict[str, str]
) -> None:
    await service.save_artifact(**file, artifact=data(b"", "application/octet-stream"))
    assert await service.load_artifact(**file) is None


@pytest.mark.parametrize(
    ("artifact", "problem"),
    [
        (types.Part(), InputValidationError),
        (types.Part(inline_data=types.Blob(mime_type="a/b")), InputValidationError),
        (types.Part(file_data=types.FileData(mime_type="a/b")), InputValidationError),
        (types.Part(function_call=types.FunctionCall(name="f")), InputValidationError),
        ({"nonsense": 1}, ValueError),
        (data(bytes(33 << 20)), BodyTooLarge),
    ],
    ids=range(6),
)
async def test_a_bad_artifact_is_refused_and_nothing_is_written(
    service: BlackboardArtifactService, file: dict[str, str], artifact: Any, problem: type[Exception]
) -> None:
    with pytest.raises(problem):
        await service.save_artifact(**file, artifact=artifact)
    assert await service.list_versions(**file) == []


async def test_bad_metadata_is_refused_and_nothing_is_written(
    service: BlackboardArtifactService, file: dict[str, str]
) -> None:
    with pytest.raises(UnsupportedValue):
        await service.save_artifact(**file, artifact=data(b"a"), custom_metadata={"n": float("nan")})
    assert await service.list_versions(**file) == []


async def test_the_in_memory_service_gives_the_same(service: BlackboardArtifactService, user: dict[str, str]) -> None:
    async def play(service: Any) -> list[Any]:
        results: list[Any] = []
        names = [("1", "a"), ("1", "a"), ("1", "user:b"), ("2", "a"), ("2", "user:b"), ("2", "a/b")]
        for number, (session_id, name) in enumerate(names):
            place = {**user, "session_id": session_id, "filename": name}
            results.append(
                await service.save_artifact(**place, artifact=data(b"%d" % number), custom_metadata={"n": 1})
            )
        await service.delete_artifact(**user, session_id="2", filename="a")
        for session_id in ("1", "2", "3"):
            results.append(await service.list_artifact_keys(**user, session_id=session_id))
            for name in ("a", "a/b", "user:b", "c"):
                place = {**user, "session_id": session_id, "filename": name}
                results.append([await service.load_artifact(**place, version=version) for version in (None, 0, 1, 2)])
                results.append(await service.list_versions(**place))
                for version in await service.list_artifact_versions(**place):
                    results.append((version.version, version.mime_type, version.custom_metadata))
        return results

    assert await play(service) == await play(InMemoryArtifactService())
