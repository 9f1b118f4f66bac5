"""The program of a task, run through a shim that ends its whole tree with it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SHIM = str(Path(__file__).with_name("shim.py"))
_PART = 64 << 10  # bytes that are read at once
_DRAIN = 5.0  # seconds for the rest of what was written


@dataclass(frozen=True)
class Exit:
    """How a program ended."""

    code: int
    """As a shell shows it: 128 + n for signal n."""
    reason: str = ""
    """"" for status 0."""
    started: bool = True
    """Whether it could be started at all."""


class Process:
    """One program. `output` is called with what it writes, by one thread."""

    def __init__(
        self,
        words: Sequence[str],
        environ: Mapping[str, str],
        directory: str,
        output: Callable[[bytes], None],
    ) -> None:
        self._program = words[0]
        self._lock = threading.Lock()
        reading, writing = os.pipe()
        try:
            self._shim = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _REEXEC, _SHIM, str(writing)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[writing],
                start_new_session=True,
                bufsize=0,
                cwd="/",
            )
        finally:
            os.close(writing)
        self._report = reading
        self._reader = threading.Thread(target=self._follow, args=(output,), daemon=True, name="fray output")
        self._reader.start()
        request = {"words": list(words), "environ": dict(environ), "directory": directory}
        self._send(json.dumps(request))

    def _send(self, line: str) -> None:
        stdin = self._shim.stdin
        with self._lock, contextlib.suppress(OSError, ValueError):
            assert stdin is not None
            data = memoryview(line.encode() + b"\n")
            while data:
                data = data[stdin.write(data) or 0 :]

    def _follow(self, output: Callable[[bytes], None]) -> None:
        assert self._shim.stdout is not None
        with self._shim.stdout as stream:
            while part := stream.read(_PART):
                output(part)

    def stop(self, grace: float) -> None:
        """Send SIGTERM to the program and its group, and SIGKILL to its whole tree after so many seconds."""
        self._send(f"stop {grace}")

    def kill(self) -> None:
        """Send SIGKILL to its whole tree."""
        self._send("kill")

    def wait(self) -> Exit:
        """Wait for its end, and that of all that it started."""
        report = b""
        with contextlib.closing(_Reading(self._report)) as source:
            while part := source.read():
                report += part
        self._shim.wait()
        self._reader.join(_DRAIN)
        assert self._shim.stdin is not None
        with contextlib.suppress(OSError):
            self._shim.stdin.close()
        if not report.endswith(b"\n"):
            return _exit_of(-signal.SIGKILL)  # the shim was killed, and the program with it
        end = json.loads(report)
        if "error" in end:
            return Exit(127, f"start {self._program}: {end['error']}", started=False)
        return _exit_of(end["code"])


class _Reading:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self) -> bytes:
        return os.read(self._descriptor, 4096)

    def close(self) -> None:
        os.close(self._descriptor)


# The report goes to descriptor 3, whatever number the pipe has here.
_REEXEC = """
import os, runpy, sys
pipe = int(sys.argv[2])
if pipe != 3:
    os.dup2(pipe, 3)
    os.close(pipe)
os.set_inheritable(3, False)
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def _exit_of(code: int) -> Exit:
    if code == 0:
        return Exit(0)
    if code > 0:
        return Exit(code, f"exit status {code}")
    name = signal.Signals(-code).name
    hint = ", as when memory runs out" if -code == signal.SIGKILL else ""
    return Exit(128 - code, f"exit status {128 - code} (killed by {name}{hint})")
