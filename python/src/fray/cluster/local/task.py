"""Tasks of a LocalCluster: a thread of this process, or a process of its own."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import io
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fray import _termination
from fray.cluster.context import JobContext, job_scope
from fray.cluster.protocols import Cluster
from fray.cluster.types import PythonCall, TaskState, Termination

_TAIL = 50  # lines
_DRAIN = 5.0  # seconds


@dataclass(frozen=True)
class Outcome:
    """How a task ended."""

    state: TaskState
    reason: str = ""
    exit_code: int | None = None
    tail: tuple[str, ...] = ()
    termination: Termination | None = None


class Task(Protocol):
    """One task of one attempt."""

    def run(self) -> Outcome:
        """Run it to its end, in the calling thread."""
        ...

    def stop(self, grace: float) -> None:
        """Have it end, after `grace` seconds by force, and return at once. It may be called at any time."""
        ...


class TaskStopped(BaseException):
    """Ends the code of a thread that is stopped. No `except Exception` catches it."""


class ThreadTask:
    """A function called in a thread."""

    def __init__(self, call: PythonCall, context: JobContext, cluster: Cluster) -> None:
        self._call, self._context, self._cluster = call, context, cluster
        self._lock = threading.Lock()
        self._thread: int | None = None  # while the function runs
        self._guarded = 0  # parts that it is in, see Guard
        self._stopped = False

    def run(self) -> Outcome:
        """Call the function."""
        try:
            try:
                return self._run()
            finally:
                self._leave()
        except TaskStopped:
            self._leave()  # it may have come in the midst of the first time
            return Outcome(TaskState.KILLED, "it was stopped")

    def _run(self) -> Outcome:
        with self._lock:
            if self._stopped:
                return Outcome(TaskState.KILLED, "it was stopped before it ran")
            self._thread = threading.get_ident()
        try:
            with job_scope(self._context, self._cluster, self):
                self._call.function(*self._call.args, **self._call.kwargs)
        except SystemExit as err:
            return _exited(err)
        except Exception as err:
            inner = err.__traceback__.tb_next if err.__traceback__ else None  # without this frame
            text = "".join(traceback.format_exception(err.with_traceback(inner)))
            sys.stderr.write(text)
            reason = "".join(traceback.format_exception_only(err)).strip()
            return Outcome(TaskState.FAILED, reason, 1, tuple(text.splitlines()[-_TAIL:]))
        return Outcome(TaskState.SUCCEEDED, exit_code=0)

    def enter(self) -> None:
        """Begin a part in which the function is not stopped, see Guard."""
        # Between the two steps of this statement CPython raises nothing that comes from elsewhere.
        with self._lock:
            self._guarded += threading.get_ident() == self._thread

    def leave(self) -> None:
        """End such a part, see Guard."""
        with self._lock:
            own = threading.get_ident() == self._thread
            self._guarded -= own
            stopped = own and self._stopped and not self._guarded
        if stopped:
            raise TaskStopped

    def _leave(self) -> None:
        """Be stopped no more. A TaskStopped that is on its way comes out of this call.

        It is not taken back: CPython up to 3.12 would have all threads check for one for ever after, which
        makes them slow, and lets a thread that is traced or debugged wait without end.
        """
        with self._lock:  # CPython checks for exceptions of other threads after each call, as of __exit__
            self._thread = None

    def stop(self, grace: float) -> None:  # noqa: ARG002 - threads cannot be asked
        """Raise TaskStopped in the function. A call into C ends first, and so does a guarded part."""
        with self._lock:
            if self._thread is not None and not self._stopped and not self._guarded:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(TaskStopped)
                )
            self._stopped = True


def _exited(err: SystemExit) -> Outcome:
    """Return what the interpreter would make of sys.exit."""
    if err.code is None or err.code == 0:
        return Outcome(TaskState.SUCCEEDED, exit_code=0)
    if isinstance(err.code, int):
        return Outcome(TaskState.FAILED, f"exit code {err.code}", err.code)
    sys.stderr.write(f"{err.code}\n")
    return Outcome(TaskState.FAILED, f"exit code 1: {err.code}", 1, (str(err.code),))


class ProcessTask:
    """A process, with a group of its own. What it writes goes to this process's output."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str]) -> None:
        self._words, self._environ = list(words), dict(environ)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False
        self._killer: threading.Timer | None = None

    def run(self) -> Outcome:
        """Start the process and wait for it."""
        with self._lock:
            if self._stopped:
                return Outcome(TaskState.KILLED, "it was stopped before it ran")
            try:
                self._process = process = subprocess.Popen(
                    self._words,
                    env=self._environ,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    encoding="utf-8",
                    errors="replace",
                    start_new_session=True,
                )
            except OSError as err:
                return Outcome(TaskState.FAILED, f"start {self._words[0]}: {err}", 127)
        lines: collections.deque[str] = collections.deque(maxlen=_TAIL)
        reader = threading.Thread(target=_follow, args=(process, lines), daemon=True)
        reader.start()
        code = process.wait()
        with self._lock:
            self._signal(signal.SIGKILL)  # what it left in its group, and may hold its output open
            self._process = None
        reader.join(_DRAIN)  # a process that left its group may keep its output open
        tail = tuple(lines)
        with self._lock:
            if self._killer is not None:
                self._killer.cancel()
            if self._stopped:
                return Outcome(TaskState.KILLED, "it was stopped", _shell_code(code), tail)
        if code == 0:
            return Outcome(TaskState.SUCCEEDED, exit_code=0, tail=tail)
        if code < 0:
            return Outcome(
                TaskState.FAILED, f"killed by {signal.Signals(-code).name}", _shell_code(code), tail
            )
        return Outcome(TaskState.FAILED, f"exit code {code}", code, tail, self._terminated())

    def _terminated(self) -> Termination | None:
        path = self._environ.get(_termination.VARIABLE)
        return _termination.read(Path(path)) if path else None

    def stop(self, grace: float) -> None:
        """Send SIGTERM to its group, and SIGKILL after `grace` seconds."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            self._signal(signal.SIGTERM)
            if self._process is not None:
                self._killer = threading.Timer(grace, self.kill)
                self._killer.daemon = True
                self._killer.start()

    def kill(self) -> None:
        """Send SIGKILL to its group."""
        with self._lock:
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


def write_lines_at_once() -> None:
    """Have each line that this process prints written when it ends, wherever that goes.

    Lines that CPython holds back for a file or a pipe come twice where several threads print at a time, and
    where the process is forked before it has written them.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)


def _shell_code(code: int) -> int:
    """Return the exit code that a shell shows: 128 + n for signal n."""
    return 128 - code if code < 0 else code


def _follow(process: subprocess.Popen[str], tail: collections.deque[str]) -> None:
    """Pass on what a process writes until it closes its output."""
    if process.stdout is None:
        return
    with process.stdout as output:
        for line in output:
            tail.append(line.rstrip("\n"))
            sys.stdout.write(line)
            sys.stdout.flush()
