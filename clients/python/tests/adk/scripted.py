"""Scripted model for ADK."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types
from pydantic import Field


class ScriptedModel(BaseLlm):
    """A model that gives the parts of its script, one response a call, and keeps the requests."""

    model: str = "scripted"
    script: list[types.Part]
    requests: list[LlmRequest] = Field(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.requests.append(llm_request.model_copy(deep=True))
        yield LlmResponse(content=types.Content(role="model", parts=[self.script.pop(0)]))
