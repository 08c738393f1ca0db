"""Models of Pydantic AI and agno that count what they hear and call a tool once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from agno.models.base import Model
from agno.models.response import ModelResponse as AgnoResponse
from pydantic_ai import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo


def counted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """An answer of Pydantic AI's FunctionModel."""
    heard = [str(part.content) for message in messages for part in message.parts if part.part_kind == "user-prompt"]
    return ModelResponse(parts=[TextPart(f"heard {len(heard)}: {heard[-1]}")])


@dataclass
class Counting(Model):
    """A model of agno's that asks no provider."""

    id: str = "counting"

    def invoke(self, messages: list[Any], *_: Any, **__: Any) -> AgnoResponse:
        if messages[-1].role == "user" and "weather" in messages[-1].content:
            call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            return AgnoResponse(role="assistant", tool_calls=[call])
        heard = [message.content for message in messages if message.role == "user"]
        return AgnoResponse(role="assistant", content=f"heard {len(heard)}: {heard[-1]}")

    async def ainvoke(self, *arguments: Any, **options: Any) -> AgnoResponse:
        return self.invoke(*arguments, **options)

    def invoke_stream(self, *arguments: Any, **options: Any) -> Iterator[AgnoResponse]:
        yield self.invoke(*arguments, **options)

    async def ainvoke_stream(self, *arguments: Any, **options: Any) -> AsyncIterator[AgnoResponse]:
        yield self.invoke(*arguments, **options)

    def _parse_provider_response(self, response: Any, **_: Any) -> AgnoResponse:
        return response

    def _parse_provider_response_delta(self, response: Any) -> AgnoResponse:
        return response
