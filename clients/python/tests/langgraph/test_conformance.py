"""The conformance suite of langgraph-checkpoint, for the async methods and for the sync ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate

from agent_blackboard.langgraph import BlackboardSaver

BASE = {"put", "put_writes", "get_tuple", "list", "delete_thread"}
EXTENDED = {"delete_for_runs", "copy_thread", "prune"}


class Blocking(BlackboardSaver):
    """A saver whose async methods are the sync ones: the suite calls async methods only."""

    async def aput(self, *arguments: Any, **named: Any) -> Any:
        return self.put(*arguments, **named)

    async def aput_writes(self, *arguments: Any, **named: Any) -> None:
        self.put_writes(*arguments, **named)

    async def aget_tuple(self, config: Any) -> Any:
        return self.get_tuple(config)

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[Any]:
        for found in self.list(config, **options):
            yield found

    async def adelete_thread(self, thread_id: str) -> None:
        self.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self.copy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self.prune(thread_ids, strategy=strategy)


@pytest.mark.parametrize("kind", [BlackboardSaver, Blocking])
async def test_every_base_and_extended_capability_conforms(
    url: str, session_name: str, kind: type[BlackboardSaver]
) -> None:
    @checkpointer_test(name=kind.__name__)
    async def made() -> AsyncIterator[BlackboardSaver]:
        async with kind(url=url, prefix=f"{session_name}:") as saver:
            yield saver

    report = await validate(made)
    report.print_report()
    assert {name: result.failures for name, result in report.results.items() if result.failures} == {}
    assert {name for name, result in report.results.items() if result.passed} == BASE | EXTENDED
    assert all(result.tests_passed > 0 and not result.tests_skipped for result in report.results.values())
    assert report.conformance_level() == "FULL"
