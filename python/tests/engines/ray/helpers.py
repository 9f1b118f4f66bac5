"""What the tests of a real Ray cluster have in common."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engines.ray import engine_programs as programs
from fray.cluster import Entrypoint, JobRequest

WAIT = float(os.environ.get("FRAY_TEST_WAIT", "300"))  # seconds; a busy machine keeps this


def until(ready: Callable[[], Any], what: str = "") -> Any:
    """Return what is ready, as soon as it is."""
    end = time.monotonic() + WAIT
    while not (found := ready()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {WAIT} s: {what or ready}")
        threading.Event().wait(0.02)
    return found


class Gate:
    """A file that a job makes, or waits for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> None:
        """Let jobs go on."""
        self.path.touch()

    def wait(self) -> None:
        """Wait until a job has made it."""
        until(self.path.exists, f"{self.path} is made")


def call(name: str, function: Any, *args: Any, **options: Any) -> JobRequest:
    return JobRequest(name, Entrypoint.from_callable(function, args), **options)


def command(name: str, *words: str, **options: Any) -> JobRequest:
    return JobRequest(name, Entrypoint.from_command(words), **options)


def held(cluster: Any, tmp_path: Path, name: str = "held", **options: Any) -> tuple[Any, int, Gate]:
    """Launch a job that waits for a gate, and return its id, its process and the gate once it runs."""
    started, gate = Gate(tmp_path / f"{name}-started"), Gate(tmp_path / f"{name}-gate")
    job_id = cluster.launch(call(name, programs.hold, str(started.path), str(gate.path), **options))
    pid = until(lambda: started.path.exists() and started.path.read_text())
    return job_id, int(pid), gate


def gone(pid: int) -> bool:
    """Report whether a process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
