"""Prompts: the board as the content of a message, typed for each provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from typing_extensions import NotRequired, TypedDict

from .values import Answer

Images = Literal["inline", "url", "none"]


class ImageAddress(TypedDict):
    """The address of an image, a data URL where it is inline."""

    url: str


class ChatPart(TypedDict):
    """A part of a message of OpenAI's Chat Completions, as UFO makes it."""

    type: Literal["text", "image_url"]
    text: NotRequired[str]
    image_url: NotRequired[ImageAddress]


class ResponsesPart(TypedDict):
    """A part of an input message of OpenAI's Responses."""

    type: Literal["input_text", "input_image"]
    text: NotRequired[str]
    image_url: NotRequired[str]


class AnthropicPart(TypedDict):
    """A block of a message of Anthropic's Messages."""

    type: Literal["text", "image"]
    text: NotRequired[str]
    source: NotRequired[dict[str, str]]
    cache_control: NotRequired[dict[str, str]]


class GeminiPart(TypedDict):
    """A part of a content of Google's Gemini."""

    text: NotRequired[str]
    inlineData: NotRequired[dict[str, str]]
    fileData: NotRequired[dict[str, str]]


Part = TypeVar("Part")


@dataclass(frozen=True)
class Prompt(Generic[Part]):
    """A rendered board. `parts` is empty with `markdown`."""

    parts: list[Part]
    text: str
    """The text of all parts, or the markdown."""
    revision: int
    etag: str | None
    empty: bool
    """Whether the four logs are empty."""
    tokens: int | None
    """The estimate of the prompt's tokens."""
    truncated: int
    """The number of entries that `max_tokens` left out."""


def prompt(answer: Answer, format: str) -> Prompt[Any]:
    """The prompt in an answer."""
    headers = answer.headers
    parts = [] if format == "markdown" else answer.json()
    text = answer.content.decode() if format == "markdown" else "\n".join(filter(None, map(_text, parts)))
    tokens, truncated = headers.get("blackboard-tokens", ""), headers.get("blackboard-truncated", "")
    return Prompt(
        parts,
        text,
        answer.revision or 0,
        answer.etag,
        headers.get("blackboard-empty") == "true",
        int(tokens) if tokens.isdecimal() else None,
        int(truncated) if truncated.isdecimal() else 0,
    )


def _text(part: dict[str, Any]) -> str:
    return str(part.get("text", ""))
