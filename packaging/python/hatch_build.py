"""Build hook that puts a given binary into the wheel as the command `blackboard`, and the platform into its name."""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface[Any]):
    """Takes the binary and the platform's tag from packaging/packages."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the command."""
        binary = os.environ.get("BLACKBOARD_BINARY")
        if binary is None:
            raise RuntimeError("packaging/packages makes this wheel: it needs a binary")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['BLACKBOARD_WHEEL_PLATFORM']}"
        build_data["shared_scripts"] = {binary: os.path.basename(binary)}
