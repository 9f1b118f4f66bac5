"""Records why a program of fray's own failed in the file of FRAY_TERMINATION_FILE, where its agent reads it.

What such a program prints is for people. Here nothing is imported that is slow and not needed at once.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fray.cluster.types import Termination, TerminationCause

VARIABLE = "FRAY_TERMINATION_FILE"
_LONGEST = 8000  # characters of a message or a trace, whose last ones are kept


def record(cause: TerminationCause, message: str, kind: str = "", trace: str = "") -> None:
    """Record why this task failed; without an agent nowhere."""
    from fray.cluster.context import job_context

    context = job_context()
    path = (context.environ if context else os.environ).get(VARIABLE)
    if not path:
        return
    content = {"cause": cause, "type": kind, "message": message[:_LONGEST], "trace": trace[-_LONGEST:]}
    try:
        Path(path).write_text(json.dumps(content))
    except OSError as err:
        sys.stderr.write(f"fray: why it failed is not recorded: {err}\n")


def read(path: Path) -> Termination | None:
    """Return what a task recorded, None if nothing, or nothing that is such a record."""
    from fray.cluster.types import Termination, TerminationCause

    try:
        content = json.loads(path.read_text())
        cause = TerminationCause(content["cause"])
        return Termination(cause, str(content["message"]), str(content["type"]), str(content["trace"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
