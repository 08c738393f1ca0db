#!/usr/bin/env bash
# crewai 1.15.30: every flow makes a memory of its own, which loads a vector database.
#
# A flow has a `memory`. If none is given, the constructor makes one, so a flow of one method that remembers nothing
# imports LanceDB and PyArrow, and makes a folder in the storage directory. That is most of the time until a first flow
# runs: seconds on a small machine. `memory=None` is the same as nothing, and `memory=False`, which turns the memory of a
# crew off, is rejected. The only switch is private (`_skip_auto_memory`).
#
# Seen: modules before and after `Flow()`, the kind of its memory, and what is in the storage directory.
#   before: nothing
#   after: lancedb, pyarrow
#   memory=None: Memory
#   memory=False: ValidationError
#   storage: memory
# Expected: nothing is loaded before a memory is used, or a way to have none.
#
# Needs python3 (3.10 to 3.13) with venv, and PyPI: 850 MB in a folder that is deleted.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check crewai==1.15.30
export CREWAI_DISABLE_TELEMETRY=true OTEL_SDK_DISABLED=true CREWAI_TRACING_ENABLED=false CREWAI_STORAGE_DIR="$at/crewai"
"$at/venv/bin/python" - <<'PYTHON' >"$at/all" 2>"$at/errors"
import os
import sys

from crewai.flow.flow import Flow, start


class Single(Flow):
    @start()
    def only(self):
        return "done"


def loaded():
    return ", ".join(name for name in ("lancedb", "pyarrow") if name in sys.modules) or "nothing"


print("SEEN before:", loaded())
Single(suppress_flow_events=True)
print("SEEN after:", loaded())
print("SEEN memory=None:", type(Single(memory=None, suppress_flow_events=True).memory).__name__)
try:
    Single(memory=False, suppress_flow_events=True)
except Exception as error:
    print("SEEN memory=False:", type(error).__name__)
print("SEEN storage:", ", ".join(sorted(os.listdir(os.environ["CREWAI_STORAGE_DIR"]))))
PYTHON
sed -n 's/^SEEN //p' "$at/all" >"$at/seen"
cat "$at/seen"
diff "$at/seen" - <<'SEEN'
before: nothing
after: lancedb, pyarrow
memory=None: Memory
memory=False: ValidationError
storage: memory
SEEN
