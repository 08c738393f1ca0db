#!/usr/bin/env bash
# agent-framework-core 1.23.0: a checkpoint of a script cannot be resumed by a program that imports the same file.
#
# A checkpoint keeps a signature of its workflow, and resuming compares it. The signature has the name of each executor's
# module, which is `__main__` for the file that was started. So a program that is started as a script, and resumed by a
# worker that imports it, is "changed", though its graph and its code are the same; so is one that moved into a package.
#
# Seen: flow.py is run as a script until it stops after two steps, then resumed, first as a script, then by an import.
#   python flow.py: stopped at 2
#   python flow.py again: [3]
#   import flow: Workflow graph has changed since the checkpoint was created. Please rebuild the original workflow before resuming.
# Expected: the third is as the second.
#
# Keep executors in a module that every process imports. Needs python3 with venv, and PyPI.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check agent-framework-core==1.23.0
cat >"$at/flow.py" <<'PYTHON'
import asyncio
import pathlib
import sys

from agent_framework import Executor, FileCheckpointStorage, WorkflowBuilder, WorkflowContext, handler


class Count(Executor):
    def __init__(self, stop_at):
        super().__init__(id="count")
        self.stop_at = stop_at

    @handler
    async def count(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        if number == self.stop_at:
            raise RuntimeError(f"stopped at {number}")
        await (ctx.send_message(number + 1) if number < 3 else ctx.yield_output(number))


async def main(name):
    storage = FileCheckpointStorage(pathlib.Path(__file__).with_name("checkpoints"))
    latest = await storage.get_latest(workflow_name="counting")
    count = Count(2 if latest is None else None)
    builder = WorkflowBuilder(name="counting", start_executor=count, checkpoint_storage=storage, output_from="all")
    workflow = builder.add_edge(count, count).build()
    try:
        run = workflow.run(0) if latest is None else workflow.run(checkpoint_id=latest.checkpoint_id)
        print(f"{name}: {(await run).get_outputs()}")
    except Exception as error:
        print(f"{name}: {error}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
PYTHON
{
  "$at/venv/bin/python" "$at/flow.py" "python flow.py"
  cp -r "$at/checkpoints" "$at/kept"
  "$at/venv/bin/python" "$at/flow.py" "python flow.py again"
  rm -r "$at/checkpoints"
  mv "$at/kept" "$at/checkpoints"
  PYTHONPATH=$at "$at/venv/bin/python" -c 'import asyncio, flow; asyncio.run(flow.main("import flow"))'
} >"$at/seen" 2>"$at/errors"
cat "$at/seen"
diff "$at/seen" - <<'SEEN'
python flow.py: stopped at 2
python flow.py again: [3]
import flow: Workflow graph has changed since the checkpoint was created. Please rebuild the original workflow before resuming.
SEEN
