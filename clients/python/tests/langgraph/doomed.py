"""The example of mails, as a process that is killed at one of its requests.

Arguments: the example's file, the thread, the number of the request, and whether that is sent `before` the kill or
`never`.
"""

from __future__ import annotations

import itertools
import os
import runpy
import signal
import sys
from typing import Any

from agent_blackboard import Client

example, thread, deadly, when = sys.argv[1:]
numbers = itertools.count(1)
send = Client.request


def request(self: Client, method: str, path: str, **options: Any) -> Any:
    number = next(numbers)
    if number == int(deadly) and when == "never":
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        return send(self, method, path, **options)
    finally:
        if number == int(deadly):
            os.kill(os.getpid(), signal.SIGKILL)


Client.request = request  # type: ignore[method-assign]
sys.argv = [example, thread]
runpy.run_path(example, run_name="__main__")
