#!/usr/bin/env bash
# crewai 1.15.30: a persisted flow continues with other types than it had, and no error says so.
#
# `@persist` stores the state of a flow after each method. The default, SQLiteFlowPersistence, writes JSON, with `str()` for
# each value that JSON has no form for. A state without a Pydantic model, which is the default, is taken from it as it is:
# a Decimal comes back as a string, bytes as the text of their `repr`, a tuple as a list, a number that is a key as text.
# The method that counted with it fails in the process that continues, or does something else; the first run was right.
#
# Seen: the same flow run once, and continued by its id.
#   first run: price Decimal, page bytes, size tuple, keys [1]
#   continued: price str, page str, size list, keys ['1']
#   double the price: 1.501.50
# Expected: the values that were stored, or an error when they are stored.
#
# Needs python3 (3.10 to 3.13) with venv, and PyPI: 850 MB in a folder that is deleted.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check crewai==1.15.30
export CREWAI_DISABLE_TELEMETRY=true OTEL_SDK_DISABLED=true CREWAI_TRACING_ENABLED=false CREWAI_STORAGE_DIR="$at/crewai"
"$at/venv/bin/python" - "$at/flows.db" <<'PYTHON' >"$at/all" 2>"$at/errors"
import decimal
import sys

from crewai.flow.flow import Flow, start
from crewai.flow.persistence import SQLiteFlowPersistence, persist


def shown(state):
    types = [f"{name} {type(state[name]).__name__}" for name in ("price", "page", "size")]
    return f"{', '.join(types)}, keys {list(state['names'])}"


@persist(SQLiteFlowPersistence(sys.argv[1]))
class Shop(Flow):
    @start()
    def fill(self):
        if "price" not in self.state:
            self.state.update(price=decimal.Decimal("1.50"), page=b"\x00", size=(2, 3), names={1: "tea"})
            print("SEEN first run:", shown(self.state))
        else:
            print("SEEN continued:", shown(self.state))
            print("SEEN double the price:", self.state["price"] * 2)


Shop(suppress_flow_events=True).kickoff(inputs={"id": "shop-1"})
Shop(suppress_flow_events=True).kickoff(inputs={"id": "shop-1"})
PYTHON
sed -n 's/^SEEN //p' "$at/all" >"$at/seen"
cat "$at/seen"
diff "$at/seen" - <<'SEEN'
first run: price Decimal, page bytes, size tuple, keys [1]
continued: price str, page str, size list, keys ['1']
double the price: 1.501.50
SEEN
