"""Sessions: one board with its logs, memories, state, agents, blobs and history."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from typing_extensions import Unpack

from .._wire import UNSET, ReadOptions, Seconds, WriteOptions, segment
from ..errors import SessionNotFound
from ..prompts import AnthropicPart, ChatPart, GeminiPart, Images, Prompt, ResponsesPart, prompt
from ..values import Answer, Attention, Event, TransactionResult, Written, written
from .agents import AsyncAgents
from .attention import follow_attention, read_attention
from .blobs import AsyncBlobs
from .events import events
from .history import AsyncCheckpoints, audit, diff, export_archive
from .lease import AsyncLease
from .logs import AsyncLog, AsyncMemory
from .messages import AsyncMessages
from .questions import AsyncQuestions
from .requests import AsyncRequests
from .screenshots import AsyncScreenshots
from .state import AsyncState
from .transactions import AsyncTransaction, transact

if TYPE_CHECKING:
    from .client import AsyncClient


class Selection(ReadOptions, total=False):
    """What a prompt shows; the contract's parameters of the same names."""

    include: Iterable[str] | None
    keys: Iterable[str] | None
    latest: int | None
    screenshots: int | None
    images: Images | None
    max_px: int | None
    profile: str | None
    cache_marks: bool | None
    max_tokens: int | None
    tokenizer: Literal["openai", "anthropic", "gemini", "other"] | None
    ascii: bool | None
    steps: Iterable[int] | None
    status: str | None
    of_agent: str | None
    """The agent whose steps and screenshots are shown."""


class AsyncSession:
    """A session of a client. Making one sends nothing."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.client = client
        self.name = name
        self._path = f"/v1/sessions/{segment(name)}"
        self.questions = AsyncQuestions(self, "questions")
        self.requests = AsyncRequests(self, "requests")
        self.trajectories = AsyncLog(self, "trajectories")
        self.screenshots = AsyncScreenshots(self, "screenshots")
        self.state = AsyncState(self)
        self.agents = AsyncAgents(self)
        self.blobs = AsyncBlobs(self)
        self.checkpoints = AsyncCheckpoints(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {self.client.url}>"

    @property
    def path(self) -> str:
        """The session's address on the server."""
        return self._path

    def memory(self, agent: str) -> AsyncMemory:
        """The memory of an agent."""
        return AsyncMemory(self, f"agents/{segment(agent)}/memory")

    def messages(self, agent: str) -> AsyncMessages:
        """The messages to an agent."""
        return AsyncMessages(self, f"agents/{segment(agent)}/messages")

    def log(self, name: str) -> AsyncLog:
        """A log by its path: `questions`, …, `agents/NAME/memory` or `agents/NAME/messages`."""
        logs: dict[str, AsyncLog] = {
            log.path: log for log in (self.questions, self.requests, self.trajectories, self.screenshots)
        }
        if name in logs:
            return logs[name]
        owner, _, kind = name.rpartition("/")
        agent = owner.removeprefix("agents/")
        if owner != f"agents/{agent}" or kind not in ("memory", "messages"):
            known = f"{', '.join(logs)}, agents/NAME/memory or agents/NAME/messages"
            raise ValueError(f"a log must be {known}, not {name!r}")
        return self.memory(agent) if kind == "memory" else self.messages(agent)

    async def request(
        self,
        method: str,
        path: str = "",
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = UNSET,
        content: bytes | None = None,
        media_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        wait: Seconds | None = None,
        keyed: bool = True,
        **options: Unpack[WriteOptions],
    ) -> Answer:
        """Make any call about this session. `path` is below the session and percent-encoded: `state/tasks`."""
        return await self.client.request(
            method,
            f"{self._path}/{path}" if path else self._path,
            params=params,
            json=json,
            content=content,
            media_type=media_type,
            headers=headers,
            wait=wait,
            keyed=keyed,
            **options,
        )

    async def read(
        self,
        path: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        **options: Unpack[ReadOptions],
    ) -> Answer:
        """Read a resource of this session, now or as it was `at` a revision or checkpoint."""
        shown = {"at": options.get("at"), "min_revision": options.get("min_revision")}
        rest = WriteOptions(agent=options.get("agent"), timeout=options.get("timeout"))
        return await self.request("GET", path, params={**shown, **(params or {})}, headers=headers, **rest)

    async def until(
        self, path: str, condition: str, wait: Seconds, *, agent: str | None = None, **params: Any
    ) -> Answer:
        """The resource when the condition (`exists`, `answered`, …) holds.

        Raises ConditionNotMet, which is a TimeoutError, where it does not hold within `wait`, and ConditionImpossible
        once it can hold no more.
        """
        return await self.request("GET", path, params={"until": condition, **params}, wait=wait, agent=agent)

    async def describe(self, **options: Unpack[ReadOptions]) -> dict[str, Any]:
        """Revision, counts, sizes, settings and labels."""
        return dict((await self.read("", **options)).json())

    async def exists(self) -> bool:
        """Whether the session exists."""
        try:
            await self.describe()
        except SessionNotFound:
            return False
        return True

    async def configure(
        self,
        settings: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        qa_pairs: Sequence[Mapping[str, Any]] | None = None,
        **options: Unpack[WriteOptions],
    ) -> Written:
        """Set settings and labels, and make the session. An absent member stays, None inside resets it."""
        given = {"settings": settings, "labels": labels, "qa_pairs": qa_pairs}
        body = {name: value for name, value in given.items() if value is not None}
        return written(await self.request("PUT", json=body, **options))

    async def delete(self, *, missing_ok: bool = True, **options: Unpack[WriteOptions]) -> None:
        """Delete the session with all that it has."""
        try:
            await self.request("DELETE", **options)
        except SessionNotFound:
            if not missing_ok:
                raise

    async def fork(self, to: str, at: int | str | None = None, **options: Unpack[WriteOptions]) -> AsyncSession:
        """A new session with the board as it is, or was at a revision or checkpoint. Raises SessionExists."""
        body = {"to": to} if at is None else {"to": to, "at": at}
        await self.request("POST", "fork", json=body, **options)
        return AsyncSession(self.client, to)

    async def restore(self, at: int | str, **options: Unpack[WriteOptions]) -> Written:
        """Make the board as it was at a revision or checkpoint, by a commit that can be undone."""
        return written(await self.request("POST", "restore", json={"at": at}, **options))

    async def purge(self, **options: Unpack[WriteOptions]) -> Written:
        """Forget all history before now. Needs the scope `admin`."""
        return written(await self.request("POST", "purge", **options))

    async def blackboard(self, *, include_state: bool = False, **options: Unpack[ReadOptions]) -> dict[str, Any]:
        """The four logs as lists of items, as `blackboard_to_dict` gives them; with the state if wanted."""
        answer = await self.read("blackboard", {"include": "state" if include_state else None}, **options)
        return dict(answer.json())

    async def replace_blackboard(self, board: Mapping[str, Any], **options: Unpack[WriteOptions]) -> Written:
        """Replace the four logs, and the state where present, by one commit. An absent log becomes empty."""
        return written(await self.request("PUT", "blackboard", json=dict(board), **options))

    async def clear(self, *, include_state: bool = False, **options: Unpack[WriteOptions]) -> Written:
        """Clear the four logs, and the state if wanted."""
        params = {"include": "state"} if include_state else None
        return written(await self.request("DELETE", "blackboard", params=params, **options))

    @overload
    async def prompt(self, format: Literal["parts"] = "parts", **selection: Unpack[Selection]) -> Prompt[ChatPart]: ...
    @overload
    async def prompt(self, format: Literal["responses"], **selection: Unpack[Selection]) -> Prompt[ResponsesPart]: ...
    @overload
    async def prompt(self, format: Literal["anthropic"], **selection: Unpack[Selection]) -> Prompt[AnthropicPart]: ...
    @overload
    async def prompt(self, format: Literal["gemini"], **selection: Unpack[Selection]) -> Prompt[GeminiPart]: ...
    @overload
    async def prompt(self, format: Literal["markdown"], **selection: Unpack[Selection]) -> Prompt[Any]: ...
    async def prompt(self, format: str = "parts", **selection: Unpack[Selection]) -> Prompt[Any]:
        """The board as a model reads it, for a provider or as UFO has it."""
        params: dict[str, Any] = {**selection, "agent": selection.get("of_agent"), "format": format}
        options = ReadOptions(agent=selection.get("agent"), timeout=selection.get("timeout"))
        for name in ("of_agent", "timeout"):
            params.pop(name, None)
        return prompt(await self.read("prompt", params, **options), format)

    def transaction(self, **options: Unpack[WriteOptions]) -> AsyncTransaction:
        """A transaction that gathers operations in a `with` block and commits them at its end."""
        return AsyncTransaction(self, options)

    async def transact(
        self,
        then: Sequence[Mapping[str, Any]],
        conditions: Sequence[Mapping[str, Any]] = (),
        otherwise: Sequence[Mapping[str, Any]] = (),
        **options: Unpack[WriteOptions],
    ) -> TransactionResult:
        """One commit of operations as the contract has them: `then` if all conditions hold, else `otherwise`."""
        return await transact(self, then, conditions, otherwise, **options)

    async def events(
        self,
        after: int | None = None,
        *,
        on: Iterable[str] | None = None,
        agent: str | None = None,
        on_gap: Literal["raise", "resync"] = "raise",
    ) -> AsyncIterator[Event]:
        """Each commit after a revision, once and in order, without end; from now on where there is no `after`.

        `on` trims the changes to logs, state paths and agents; `agent` to one writer. A broken connection is made
        again where it broke off; ConnectionFailed is raised after the client's `timeout` without contact. Where events
        are not kept any more, HistoryGap is raised, or with `on_gap="resync"` an event of that kind comes.
        """
        async for event in events(self, after, on=on, agent=agent, on_gap=on_gap):
            yield event

    async def attention(
        self,
        agent: str,
        *,
        after: int = 0,
        match: Mapping[str, Any] | None = None,
        include: Iterable[str] | None = None,
        wait: Seconds | None = None,
        timeout: float | None = None,
    ) -> Attention:
        """All that waits for an agent: messages, claimable requests, answers, cancelled claims, results to judge.

        Claimable requests and answers are those that came after a revision, `next` of another result. The requests have
        the members `match`. `include` names the lists that are wanted. With `wait` it waits until something is there;
        at its end nothing is.
        """
        return await read_attention(self, agent, after, match, include, wait, timeout)

    async def follow_attention(
        self,
        agent: str,
        *,
        after: int = 0,
        match: Mapping[str, Any] | None = None,
        include: Iterable[str] | None = None,
    ) -> AsyncIterator[Attention]:
        """What waits for an agent, each time something new does, without end; `match` and `include` as in `attention`.

        A claimable request or an answer is in one result, a message in each until it is acknowledged, a cancelled claim
        or a result to judge until it ends. That such a thing goes away is no new result.
        Raises ConnectionFailed after 25 s without contact, or the client's `timeout` if that is longer.
        """
        async for found in follow_attention(self, agent, after, match, include):
            yield found

    async def diff(self, from_: int | str, to: int | str | None = None) -> AsyncIterator[dict[str, Any]]:
        """What was added, changed and removed between two revisions or checkpoints: kind, path, before, after."""
        async for change in diff(self, from_, to):
            yield change

    async def audit(self, trace: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """Every commit that is kept, oldest first: revision, at, agent, kind, changes."""
        async for commit in audit(self, trace):
            yield commit

    async def export_archive(self, path: str | os.PathLike[str]) -> None:
        """Write the whole session to a file, which appears when it is complete."""
        await export_archive(self, path)

    def lease(self, name: str, ttl: Seconds = 30.0, wait: Seconds | None = None) -> AsyncLease:
        """A lease that one holder at a time has, kept by renewal in a `with` block.

        Raises LeaseHeld at the block's begin where another has it for longer than `wait`.
        """
        return AsyncLease(self, name, ttl, wait)
