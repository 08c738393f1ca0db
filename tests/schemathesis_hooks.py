"""What no schema can say of the requests that schemathesis makes."""

import itertools
import re

import schemathesis

requests = itertools.count(1)


@schemathesis.hook
def map_query(context, query):
    """A claim goes with its fence: one without the other is refused."""
    if query and ("claim" in query) != ("fence" in query):
        return {name: value for name, value in query.items() if name not in ("claim", "fence")}
    return query


@schemathesis.hook
def map_headers(context, headers):
    """A key is of one request: another one with it is refused."""
    key = (headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and re.fullmatch("[!-~]{1,200}", key):
        return {**headers, "Idempotency-Key": f"{key}-{next(requests)}"}
    return headers
