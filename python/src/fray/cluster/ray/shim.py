"""Runs one program and ends its whole tree with it: `python -I -S shim.py`, with the request on stdin.

It stands between the Ray worker that supervises a task and the task's program. As the subreaper of the
program's processes (prctl(2), PR_SET_CHILD_SUBREAPER) it also gets those which left its session, so that all
of them end when the program ends, when it is asked to, and when the worker dies, which closes stdin.

On stdin come a line of JSON (words, environ, directory) and then lines "stop SECONDS" or "kill". The program
writes to the shim's own output. On descriptor 3 the shim reports its end as a line of JSON: {"code": 0},
negative for a signal, or {"error": TEXT} if it could not be started. This file imports nothing of fray, and
little else, since it is on the way of every start.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

_REPORT = 3  # the descriptor of the report
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LAST = 10.0  # seconds that processes get to vanish after SIGKILL


def main() -> None:
    """Run the program to its end."""
    wake, waking = os.pipe()
    for end in (wake, waking):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of its group; what counts comes on stdin
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prctl = _prctl()
    if prctl is not None:
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    commands = _Lines()
    request = None
    while request is None:
        select.select([0], [], [])
        lines = commands.read()
        if commands.ended:
            return
        request = lines.pop(0) if lines else None
    _report(_run(json.loads(request), lines, commands, wake, prctl))


def _report(end: dict[str, object]) -> None:
    os.write(_REPORT, json.dumps(end).encode() + b"\n")


class _Lines:
    """The lines of stdin, as they come."""

    def __init__(self) -> None:
        self._rest = b""
        self.ended = False

    def read(self) -> list[str]:
        data = os.read(0, 1 << 20)
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode() for line in lines]


def _prctl() -> Any:
    """Return prctl of the C library, None where there is none."""
    try:
        import ctypes

        found = ctypes.CDLL(None, use_errno=True).prctl
    except (ImportError, OSError, AttributeError):
        return None
    return found


def _run(request: Any, lines: list[str], commands: _Lines, wake: int, prctl: Any) -> dict[str, object]:
    pid, error = _start(request, prctl)
    if error:
        return {"error": error}
    deadline = None
    code = None
    while code is None:
        for line in lines:
            word, _, seconds = line.partition(" ")
            if word == "stop" and deadline is None:
                _signal_all(pid, signal.SIGTERM)
                deadline = time.monotonic() + float(seconds)
            elif word == "kill":
                deadline = 0.0
        if commands.ended:
            deadline = 0.0
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if left == 0.0:
            _signal_all(pid, signal.SIGKILL)
            left = 0.05
        sources = [wake] if commands.ended else [wake, 0]
        ready, _, _ = select.select(sources, [], [], left)
        lines = commands.read() if 0 in ready else []
        if wake in ready:
            _drain(wake)
        code = _reaped(pid)
    _end_rest(pid)
    return {"code": code}


def _drain(wake: int) -> None:
    try:
        os.read(wake, 4096)
    except BlockingIOError:
        pass


def _start(request: Any, prctl: Any) -> tuple[int, str]:
    """Return the program's process, and why it could not be started, "" if it was."""
    failed, failing = os.pipe()
    os.set_inheritable(failing, False)
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            if prctl is not None:
                prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.close(_REPORT)
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.dup2(1, 2)
            os.chdir(request["directory"])
            os.execvpe(request["words"][0], request["words"], request["environ"])
        except BaseException as err:
            os.write(failing, str(err).encode())
        finally:
            os._exit(127)
    os.close(failing)
    error = b""
    while part := os.read(failed, 4096):
        error += part
    os.close(failed)
    if error:
        os.waitpid(pid, 0)
    return pid, error.decode(errors="replace")


def _reaped(main: int) -> int | None:
    """Reap what has ended, and return how the program did, None while it runs."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == main:
            code = os.waitstatus_to_exitcode(status)


def _end_rest(main: int) -> None:
    """Kill what the program has left behind, and wait for its end."""
    until = time.monotonic() + _LAST
    while time.monotonic() < until:
        _signal_all(main, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def _signal_all(main: int, number: int) -> None:
    """Send a signal to the program's group and to all that descends from this process."""
    try:
        os.killpg(main, number)
    except OSError:
        pass
    for pid in _descendants():
        if pid == main or (number != signal.SIGKILL and _group(pid) == main):
            continue  # its group has it
        try:
            os.kill(pid, number)
        except OSError:
            pass


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    try:
        entries = os.listdir("/proc")
    except OSError:
        return []
    for entry in entries:
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry))
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


if __name__ == "__main__":
    main()
    sys.exit(0)
