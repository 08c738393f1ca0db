"""The command `blackboard-server`, which is `blackboard` by the name of its package."""

from __future__ import annotations

import os
import subprocess
import sys

from . import binary


def main() -> None:
    """Become the binary, with the same arguments."""
    command = [str(binary()), *sys.argv[1:]]
    if sys.platform == "win32":
        # There, a replaced process would give its shell the prompt back before it ends.
        sys.exit(subprocess.call(command))
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
