"""What no schema can say of the requests that schemathesis makes."""

import schemathesis


@schemathesis.hook
def map_query(context, query):
    """A claim goes with its fence: one without the other is refused."""
    if query and ("claim" in query) != ("fence" in query):
        return {name: value for name, value in query.items() if name not in ("claim", "fence")}
    return query
