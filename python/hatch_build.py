"""Puts the fray program into the wheel, where scripts/release names one.

FRAY_WHEEL_PROGRAMS are the files, separated by colons, that the wheel installs beside the
interpreter; FRAY_WHEEL_PLATFORM is the platform tag of the wheel. Without them the wheel
has the Python package alone, and is of any platform.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramBuildHook(BuildHookInterface[Any]):
    """Adds the programs of a release to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the programs as scripts, and tag the wheel with their platform."""
        programs = os.environ.get("FRAY_WHEEL_PROGRAMS", "")
        if self.target_name != "wheel" or version == "editable" or not programs:
            return
        for program in programs.split(":"):
            build_data["shared_scripts"][program] = Path(program).name
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['FRAY_WHEEL_PLATFORM']}"
