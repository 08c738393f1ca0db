"""Hooks for schemathesis: rules of requests that a schema cannot express."""

import itertools
import json
import re

import schemathesis

requests = itertools.count(1)


# What a wait looks like that is not refused for its own sake.
WAIT = re.compile("0*([0-9]{1,4}ms|[1-5][0-9]{4}ms|60000ms|[0-9]s|[1-5][0-9]s|60s|[01]m|0h|0d)")


@schemathesis.hook
def before_load_schema(context, schema):
    """Lines of JSON have no serializer, and their examples are sent by tests/http."""
    for item in schema["paths"].values():
        for operation in item.values():
            body = operation.get("requestBody", {}) if isinstance(operation, dict) else {}
            for media_type, content in body.get("content", {}).items():
                if media_type in ("application/x-ndjson", "application/jsonl"):
                    content.pop("example", None)


@schemathesis.hook
def map_query(context, query):
    """A claim goes with its fence: one without the other is refused. A wait needs something to wait for,
    and nothing that was is waited for; tests/http waits. A value to wait for is JSON, members to match are an object. A default goes with the end
    that it is for. A signature is of one image and goes with its end: tests/http signs. A plan names requests that
    exist: tests/http plans. A profile is one that the session has: tests/http sets some."""
    if not query:
        return query
    left_out = {"profile"}
    if ("claim" in query) != ("fence" in query):
        left_out |= {"claim", "fence"}
    if WAIT.fullmatch(str(query.get("wait", ""))):
        left_out.add("wait")
    if "at" in query or not is_end(str(query.get("until", ""))):
        left_out.add("until")
    if "signature" in query:
        left_out |= {"signature", "expires"}
    if context.operation.method.upper() == "POST" and are_seqs(query.get("after")):
        left_out.add("after")
    if not is_object(str(query.get("match", "{}"))):
        left_out.add("match")
    if "not_before" in query:
        # It comes after it.
        left_out.add("deadline")
    if ("default" in query) != ("expires" in query):
        left_out |= {"default", "expires"}
    return {name: value for name, value in query.items() if name not in left_out}


def refused(constant):
    """NaN and the infinities are no JSON, though Python reads them."""
    raise ValueError(constant)


def is_object(match):
    """Whether it is a JSON object with few enough members."""
    try:
        members = json.loads(match, parse_constant=refused)
    except ValueError:
        return False
    return isinstance(members, dict) and len(members) <= 16


def is_end(until):
    """Whether `equals:` has JSON; of the other forms the schema says all."""
    if until.startswith("equals:"):
        try:
            json.loads(until.removeprefix("equals:"), parse_constant=refused)
        except ValueError:
            return False
    return True


@schemathesis.hook
def map_body(context, body):
    """The plan of an append in a transaction names requests that exist."""
    if not isinstance(body, dict):
        return body
    for branch in ("then", "else"):
        operations = body.get(branch)
        for operation in operations if isinstance(operations, list) else []:
            if isinstance(operation, dict) and are_seqs(operation.get("after")):
                del operation["after"]
            if isinstance(operation, dict) and "not_before" in operation:
                operation.pop("deadline", None)
    return body


def are_seqs(value):
    """Whether it is a list of seqs, as a plan has it, and not refused for its form."""
    if isinstance(value, str):
        value = value.split(",")
    is_list = isinstance(value, list) and 0 < len(value) <= 1000
    return is_list and all(re.fullmatch(r"0*[1-9][0-9]{0,18}(\.0)?", str(seq)) for seq in value)


@schemathesis.hook
def map_headers(context, headers):
    """A key is of one request: another one with it is refused."""
    key = (headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and re.fullmatch("[!-~]{1,200}", key):
        return {**headers, "Idempotency-Key": f"{key}-{next(requests)}"}
    return headers
