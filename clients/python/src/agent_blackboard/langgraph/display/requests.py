"""Requests of a graph to a person: the text and the choices of an interrupt, and the value that an answer stands for.

An answer is text, and stays text. The exceptions are the approvals of LangChain's `HumanInTheLoopMiddleware`, which
deepagents uses, and interrupts with a `response_schema`, whose answers are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...errors import BlackboardError
from .views import ITEMS_MAX, text, view

_TEXTS = ("question", "query", "text", "message", "prompt", "description", "instruction", "title")
_CHOICES = ("options", "choices")
APPROVE, REJECT, RESPOND = "approve", "reject", "respond"
_SHORT = (APPROVE, REJECT)
"""The decisions that one word says."""


class InvalidAnswer(BlackboardError, ValueError):
    """An answer that an interrupt cannot be resumed with. `resume` asks the question again."""


def question_text(interrupt: Any, node: str) -> str:
    """What an interrupt asks: its text, or the member of its value that is one, or the value as JSON."""
    value = interrupt.value
    found = value if isinstance(value, str) else ""
    if requests := _batch(value):
        found = "\n\n".join(_described(request) for request in requests[:ITEMS_MAX])
    elif isinstance(value, dict):
        found = next((value[name] for name in _TEXTS if isinstance(value.get(name), str) and value[name].strip()), "")
    if not found.strip() and value not in ("", None):
        found = json.dumps(view(value), ensure_ascii=False)
    return text(found) if found.strip() else f"{node} waits for an answer."


def options(interrupt: Any) -> list[str]:
    """The choices that an interrupt gives: texts, numbers or truth values; none if there are others."""
    value = interrupt.value
    if _batch(value) or _is_approval(value):
        allowed = _allowed(interrupt)
        return [decision for decision in _SHORT if decision in allowed]
    if not isinstance(value, dict):
        return []
    choices = next((value[name] for name in _CHOICES if isinstance(value.get(name), (list, tuple))), ())
    plain = all(isinstance(choice, str) and choice.strip() for choice in choices)
    return [text(choice) for choice in choices[:ITEMS_MAX]] if plain else []


def value_of(interrupt: Any, answer: str | None) -> Any:
    """The value to resume an interrupt with; `answer` is None for a question that was skipped. Raises InvalidAnswer."""
    if requests := _batch(interrupt.value):
        return {"decisions": _decisions(answer, _allowed(interrupt), len(requests))}
    if _is_approval(interrupt.value):
        return _decision(answer, _allowed(interrupt))
    if answer is not None and _wants_json(getattr(interrupt, "response_schema", None)):
        found = _json(answer)
        return answer if found is None else found
    return answer


def _decisions(answer: str | None, allowed: Sequence[str], count: int) -> list[Any]:
    found = None if answer is None else _json(answer)
    if isinstance(found, dict) and isinstance(found.get("decisions"), list):
        found = found["decisions"]
    made = found if isinstance(found, list) else [_decision(answer, allowed)] * count
    if len(made) != count:
        raise InvalidAnswer(f"{count} decisions are needed, not {len(made)}")
    return [_checked(decision, allowed) for decision in made]


def _decision(answer: str | None, allowed: Sequence[str]) -> Any:
    """The decision of an answer: one of its words, JSON, or a reply or the reason of a rejection in free text."""
    found = None if answer is None else _json(answer)
    if isinstance(found, dict):
        return _checked(found, allowed)
    word = REJECT if answer is None else answer.strip().lower()
    if word in _SHORT:
        return _checked({"type": word}, allowed)
    return _checked({"type": RESPOND if RESPOND in allowed else REJECT, "message": answer}, allowed)


def _checked(decision: Any, allowed: Sequence[str]) -> Any:
    kind = decision.get("type") if isinstance(decision, dict) else None
    if kind not in allowed:
        raise InvalidAnswer(f"the decisions are {', '.join(allowed)}, not {text(str(kind), 100)}")
    return decision


def _allowed(interrupt: Any) -> list[str]:
    """The decisions that are allowed for all actions of an interrupt."""
    value = interrupt.value
    if _batch(value):
        configs = [one for one in value.get("review_configs", ()) if isinstance(one, dict)]
        sets = [[str(one) for one in config.get("allowed_decisions", ())] for config in configs]
        return [one for one in sets[0] if all(one in other for other in sets)] if sets else list(_SHORT)
    schema = getattr(interrupt, "response_schema", None)
    schema = schema if isinstance(schema, dict) else {}
    by_type = (schema.get("discriminator") or {}).get("mapping")
    if isinstance(by_type, dict):
        return [str(one) for one in by_type]
    constant = ((schema.get("properties") or {}).get("type") or {}).get("const")
    return [str(constant)] if constant else list(_SHORT)


def _batch(value: Any) -> list[Any]:
    """The actions of a `HITLRequest`."""
    requests = value.get("action_requests") if isinstance(value, dict) else None
    return requests if isinstance(requests, list) else []


def _is_approval(value: Any) -> bool:
    """Whether a value is a `ToolApprovalRequest`."""
    return isinstance(value, dict) and value.get("type") == "tool_approval"


def _described(request: Any) -> str:
    if not isinstance(request, dict):
        return str(view(request))
    described = request.get("description")
    return described if isinstance(described, str) and described else json.dumps(view(request), ensure_ascii=False)


def _wants_json(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") != "string"


def _json(answer: str) -> Any:
    """The JSON of an answer, None if it is none."""
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return None
