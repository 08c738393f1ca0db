"""Questions: asked by an agent, answered by a person elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from typing_extensions import Unpack

from .._wire import Seconds, WriteOptions, duration, json_text, seconds
from ..errors import UnsupportedValue
from ..values import Appended, Entry, Written, entry, written
from .logs import AsyncLog

DEFAULT_MAX = 16 << 10
"""The longest default in bytes, percent-encoded: it is in the address, and the server limits a head to 32 KiB."""


class AsyncQuestions(AsyncLog):
    """The questions of a session."""

    async def post(
        self,
        question: str | Mapping[str, Any],
        *,
        expires: Seconds | None = None,
        default: Any = None,
        options: Iterable[str] | None = None,
        strict_options: bool = False,
        **write: Unpack[WriteOptions],
    ) -> Appended:
        """Post a question without waiting. After `expires` the server answers it with `default`.

        `options` are choices that are offered; with `strict_options` no other answer is accepted.
        """
        item: dict[str, Any] = {"question": question} if isinstance(question, str) else dict(question)
        if isinstance(options, str):
            raise UnsupportedValue("options are several texts, not one")
        if options is not None:
            item["options"] = list(options)
        if strict_options:
            item["strict_options"] = True
        if default is not None and len(quote(json_text(default))) > DEFAULT_MAX:
            raise UnsupportedValue(f"a default must have at most {DEFAULT_MAX >> 10} KiB, percent-encoded")
        params = {"expires": None if expires is None else duration(expires), "default": default}
        return await self._append(item, params, write)

    async def ask(
        self,
        question: str | Mapping[str, Any],
        *,
        wait: Seconds = 600.0,
        default: str | None = None,
        options: Iterable[str] | None = None,
        strict_options: bool = False,
        **write: Unpack[WriteOptions],
    ) -> str | None:
        """Post a question and wait for its answer; None where it was skipped. `options` are as for `post`.

        With a `default` the question expires after `wait` and that is the answer, here and on the board. Without one
        ConditionNotMet, a TimeoutError, is raised, and the question stays open.
        """
        expires = None if default is None else wait
        posted = await self.post(
            question, expires=expires, default=default, options=options, strict_options=strict_options, **write
        )
        # The server sets the default itself, within a second of the time limit unless it is away then.
        patience = seconds(wait) + (0.0 if default is None else 30.0)
        answered = await self.wait_answered(posted.seq, patience)
        answer = answered.item.get("answer")
        return None if answer is None else str(answer)

    async def answer(self, seq: int, text: str, **options: Unpack[WriteOptions]) -> Written:
        """Answer a question. The first answer wins; later ones raise AlreadyAnswered."""
        return await self._answer(seq, {"answer": text}, options)

    async def skip(self, seq: int, **options: Unpack[WriteOptions]) -> Written:
        """Decline to answer a question."""
        return await self._answer(seq, {"skip": True}, options)

    async def _answer(self, seq: int, body: dict[str, Any], options: WriteOptions) -> Written:
        path = f"{self.path}/{int(seq)}/answer"
        return written(await self.session.request("PUT", path, json=body, **options))

    async def wait_answered(self, seq: int, wait: Seconds = 600.0) -> Entry:
        """The question when it is answered, skipped or expired. Raises ConditionNotMet, a TimeoutError."""
        answer = await self.session.until(f"{self.path}/{int(seq)}", "answered", wait)
        return entry(answer.json(), answer.etag)
