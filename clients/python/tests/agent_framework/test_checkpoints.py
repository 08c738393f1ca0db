"""Checkpoints of Microsoft Agent Framework's workflows on a board."""

import asyncio
import dataclasses
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    CheckpointStorage,
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowContext,
    handler,
)

from agent_blackboard import AsyncClient, BodyTooLarge, ConnectionFailed
from agent_blackboard.agent_framework import BlackboardCheckpointStorage


@dataclasses.dataclass
class Draft:
    """A value of an application's own in a checkpoint."""

    text: str


DRAFT = f"{Draft.__module__}:{Draft.__qualname__}"


@pytest.fixture
async def client(url: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(url) as client:
        yield client


@pytest.fixture
def storage(client: AsyncClient, session_name: str) -> BlackboardCheckpointStorage:
    return BlackboardCheckpointStorage(client, session=session_name, allowed_checkpoint_types=[DRAFT])


def checkpoint(identifier: str, workflow: str = "w", second: int = 0, **state: Any) -> WorkflowCheckpoint:
    return WorkflowCheckpoint(
        workflow_name=workflow,
        graph_signature_hash="g",
        checkpoint_id=identifier,
        timestamp=datetime(2026, 1, 1, 0, 0, second, tzinfo=timezone.utc).isoformat(),
        state=state,
    )


@pytest.mark.parametrize("kind", ["memory", "file", "board"])
async def test_every_storage_of_the_framework_behaves_alike(
    kind: str, storage: BlackboardCheckpointStorage, tmp_path: Path
) -> None:
    used: CheckpointStorage = {
        "memory": InMemoryCheckpointStorage(),
        "file": FileCheckpointStorage(tmp_path, allowed_checkpoint_types=[DRAFT]),
        "board": storage,
    }[kind]
    assert await used.list_checkpoints(workflow_name="w") == []
    assert await used.get_latest(workflow_name="w") is None
    draft = Draft("first")
    rest = {"at": datetime(2026, 1, 1), "counts": Counter("aab"), "text": "é", "pi": 3.14}
    saved = checkpoint("c2", second=2, draft=draft, **rest)
    assert await used.save(saved) == "c2"
    draft.text = "changed since"
    assert await used.save(checkpoint("c1", second=1, number=float("inf"))) == "c1"
    assert await used.save(checkpoint("other", "v", second=9)) == "other"
    loaded = await used.load("c2")
    assert loaded == dataclasses.replace(
        saved,
        state={"draft": Draft("first"), "at": datetime(2026, 1, 1), "counts": Counter("aab"), "text": "é", "pi": 3.14},
    )
    assert loaded.state is not (await used.load("c2")).state
    listed = await used.list_checkpoints(workflow_name="w")
    assert {each.checkpoint_id for each in listed} == {"c1", "c2"}
    assert set(await used.list_checkpoint_ids(workflow_name="w")) == {"c1", "c2"}
    latest = await used.get_latest(workflow_name="w")
    assert latest is not None
    assert latest.checkpoint_id == "c2"
    await used.save(checkpoint("c1", second=5, text="replaced"))
    assert (await used.load("c1")).state == {"text": "replaced"}
    assert (await used.get_latest(workflow_name="w")).checkpoint_id == "c1"  # type: ignore[union-attr]
    assert await used.delete("c1") is True
    assert await used.delete("c1") is False
    assert await used.list_checkpoint_ids(workflow_name="w") == ["c2"]
    with pytest.raises(WorkflowCheckpointException, match="c1"):
        await used.load("c1")


class Count(Executor):
    """Sends numbers to itself, and tells each of them."""

    def __init__(self, seen: list[int], stop_at: int | None = None) -> None:
        super().__init__(id="count")
        self._seen = seen
        self._stop_at = stop_at

    @handler
    async def count(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        if number == self._stop_at:
            raise RuntimeError("the power went")
        self._seen.append(number)
        ctx.set_state("drafts", [*(ctx.get_state("drafts") or []), Draft(f"draft {number}")])
        await (ctx.send_message(number + 1) if number < 5 else ctx.yield_output(number))


def counting(seen: list[int], storage: CheckpointStorage, stop_at: int | None = None) -> Workflow:
    executor = Count(seen, stop_at)
    builder = WorkflowBuilder(name="counting", start_executor=executor, checkpoint_storage=storage, output_from="all")
    return builder.add_edge(executor, executor).build()


async def test_a_workflow_goes_on_where_it_was_after_the_server_was_killed(server: Any) -> None:
    seen: list[int] = []
    async with AsyncClient(server.url) as client:
        storage = BlackboardCheckpointStorage(client, allowed_checkpoint_types=[DRAFT])
        with pytest.raises(RuntimeError, match="power"):
            await counting(seen, storage, stop_at=3).run(0)
    assert seen == [0, 1, 2]
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    async with AsyncClient(server.url) as client:
        storage = BlackboardCheckpointStorage(client, allowed_checkpoint_types=[DRAFT])
        latest = await storage.get_latest(workflow_name="counting")
        assert latest is not None
        result = await counting(seen, storage).run(checkpoint_id=latest.checkpoint_id)
        assert result.get_outputs() == [5]
        last = await storage.get_latest(workflow_name="counting")
    assert seen == [0, 1, 2, 3, 4, 5]
    assert last is not None
    assert last.state["drafts"] == [Draft(f"draft {number}") for number in range(6)]


async def test_checkpoints_are_listed_in_the_order_of_their_first_save(storage: BlackboardCheckpointStorage) -> None:
    identifiers = [f"c{number}" for number in (5, 3, 9, 1, 7, 2, 8, 4, 6, 0, 10)]
    for identifier in identifiers:
        await storage.save(checkpoint(identifier))
    await storage.save(checkpoint("c9", second=3))
    assert await storage.list_checkpoint_ids(workflow_name="w") == identifiers
    assert [each.checkpoint_id for each in await storage.list_checkpoints(workflow_name="w")] == identifiers


async def test_times_are_compared_with_or_without_an_offset(storage: BlackboardCheckpointStorage) -> None:
    times = {"a": "2026-01-01T12:00:00", "b": "2026-01-01T12:30:00Z", "c": "2026-01-01T13:00:00+02:00"}
    for identifier, timestamp in times.items():
        await storage.save(dataclasses.replace(checkpoint(identifier), timestamp=timestamp))
    latest = await storage.get_latest(workflow_name="w")
    assert latest is not None
    assert latest.checkpoint_id == "b"


async def test_a_type_that_is_not_allowed_is_refused_when_it_is_saved(client: AsyncClient, session_name: str) -> None:
    storage = BlackboardCheckpointStorage(client, session=session_name)
    with pytest.raises(WorkflowCheckpointException, match="Draft"):
        await storage.save(checkpoint("c1", draft=Draft("x")))
    with pytest.raises(WorkflowCheckpointException, match="c1"):
        await storage.save(checkpoint("c1", unpicklable=lambda: None))
    with pytest.raises(WorkflowCheckpointException, match="c1"):
        await storage.save(checkpoint("c1", surrogate="\ud800"))
    with pytest.raises(WorkflowCheckpointException, match="c1"):
        await storage.save(dataclasses.replace(checkpoint("c1"), timestamp="yesterday"))
    assert not await client.session(session_name).exists()


async def test_a_checkpoint_that_cannot_be_decoded_is_left_out_and_named(
    storage: BlackboardCheckpointStorage, client: AsyncClient, session_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    await storage.save(checkpoint("good"))
    await storage.save(checkpoint("foreign", second=1, draft=Draft("x")))
    await storage.save(checkpoint("damaged", second=2))
    board = client.session(session_name)
    record = await board.state.get("checkpoints/damaged")
    await board.state.set("checkpoints/damaged", record | (await board.blobs.put(b"\x80damaged")).ref)
    narrow = BlackboardCheckpointStorage(client, session=session_name)
    with caplog.at_level(logging.WARNING):
        assert [each.checkpoint_id for each in await narrow.list_checkpoints(workflow_name="w")] == ["good"]
        assert (await narrow.get_latest(workflow_name="w")).checkpoint_id == "good"  # type: ignore[union-attr]
    assert "'foreign' is left out" in caplog.text
    assert "'damaged' is left out" in caplog.text
    with pytest.raises(WorkflowCheckpointException, match="damaged"):
        await narrow.load("damaged")
    with pytest.raises(WorkflowCheckpointException, match="Draft"):
        await narrow.load("foreign")
    for content in (b'{"nothing": 1}', b"[]", b"7"):
        await board.state.set("checkpoints/damaged", record | (await board.blobs.put(content)).ref)
        with pytest.raises(WorkflowCheckpointException):
            await narrow.load("damaged")
    for blob in ("none", 7):
        await board.state.set("checkpoints/damaged", record | {"$blob": blob})
        with pytest.raises(WorkflowCheckpointException, match="damaged"):
            await narrow.load("damaged")
    await board.state.set("checkpoints/damaged", {"workflow_name": "w"})
    await board.state.set("checkpoints/foreign", 7)
    assert await narrow.list_checkpoints(workflow_name="w") == [await narrow.load("good")]
    assert await narrow.get_latest(workflow_name="w") == await narrow.load("good")


async def test_a_checkpoint_beyond_the_bounds_is_refused_and_not_listed(
    storage: BlackboardCheckpointStorage, client: AsyncClient, session_name: str
) -> None:
    with pytest.raises(BodyTooLarge):
        await storage.save(checkpoint("large", text="x" * (33 << 20)))
    assert await storage.list_checkpoint_ids(workflow_name="w") == []
    await storage.save(checkpoint("fits", text="x" * (31 << 20)))
    assert len((await storage.load("fits")).state["text"]) == 31 << 20


async def test_any_id_is_a_key(storage: BlackboardCheckpointStorage) -> None:
    identifiers = ["", ".", "..", "a/b~c é", "100%", "x" * 2000]
    for identifier in identifiers:
        await storage.save(checkpoint(identifier))
    assert await storage.list_checkpoint_ids(workflow_name="w") == identifiers
    for identifier in identifiers:
        assert (await storage.load(identifier)).checkpoint_id == identifier
        assert await storage.delete(identifier)


async def test_the_bytes_on_the_board_are_the_framework_s_own(
    storage: BlackboardCheckpointStorage, client: AsyncClient, session_name: str, tmp_path: Path
) -> None:
    saved = checkpoint("c1", draft=Draft("x"), text="é")
    await storage.save(saved)
    await FileCheckpointStorage(tmp_path, allowed_checkpoint_types=[DRAFT]).save(saved)
    board = client.session(session_name)
    record = await board.state.get("checkpoints/c1")
    content = await board.blobs.get(record["$blob"])
    assert json.loads(content) == json.loads((tmp_path / "c1.json").read_text("utf-8"))
    assert record == {
        "workflow_name": "w",
        "timestamp": saved.timestamp,
        "iteration_count": 0,
        "previous_checkpoint_id": None,
        "bytes": len(content),
        "$blob": record["$blob"],
    }


async def test_a_server_that_is_away_is_an_error_and_no_missing_checkpoint() -> None:
    async with AsyncClient("http://127.0.0.1:9", timeout=0.5) as nowhere:
        storage = BlackboardCheckpointStorage(nowhere)
        for call in (storage.load("c1"), storage.get_latest(workflow_name="w"), storage.save(checkpoint("c1"))):
            with pytest.raises(ConnectionFailed):
                await call
