"""Lets `fray profile --type memory` measure this process.

Actors of fray serve by themselves. Any other program calls `fray.profiles.serve()` once. The socket is in a
directory of the task that only its user can enter. While a measurement runs, tracemalloc traces what is
allocated, which makes the program slower; otherwise a thread waits and nothing else is done.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

_VARIABLE = "FRAY_PROFILES"
_DEPTH = 32  # frames of a stack
_LONGEST = 1800  # seconds
_MOST_STACKS = 20_000
_LONGEST_REQUEST = 8192  # bytes
_measuring = threading.Lock()
_begun: set[int] = set()  # process ids: a child that was forked serves anew


def serve() -> None:
    """Serve from now on, in a thread of its own; outside of tasks, do nothing."""
    directory = os.environ.get(_VARIABLE)
    if not directory or os.getpid() in _begun:
        return
    _begun.add(os.getpid())
    try:
        listener = _listen(directory, f"{os.getpid()}.sock")
    except OSError as err:
        sys.stderr.write(f"fray: fray profile cannot measure the memory of this process: {err}\n")
        return
    threading.Thread(target=_accept, args=(listener,), name="fray-profiles", daemon=True).start()


def _listen(directory: str, name: str) -> socket.socket:
    at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=at)  # of a process that had the same id
        # An address has 108 bytes, and directories of hosts may be deeper.
        short = f"/proc/self/fd/{at}/{name}" if sys.platform == "linux" else str(Path(directory) / name)
        listener.bind(short)
        Path(short).chmod(0o600)
        listener.listen(4)
    except OSError:
        listener.close()
        raise
    finally:
        os.close(at)
    return listener


def _accept(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_answer, args=(connection,), name="fray-profile", daemon=True).start()


def _answer(connection: socket.socket) -> None:
    with contextlib.closing(connection), contextlib.suppress(OSError):
        connection.settimeout(60)
        status, body = _reply(connection)
        head = f"HTTP/1.0 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode() + body)


def _reply(connection: socket.socket) -> tuple[str, bytes]:
    request = b""
    while b"\r\n\r\n" not in request:
        part = connection.recv(_LONGEST_REQUEST)
        if not part or len(request) > _LONGEST_REQUEST:
            return "400 Bad Request", b"this is no request\n"
        request += part
    words = request.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    asked = urlsplit(words[1] if len(words) > 1 else "")
    if asked.path != "/memory":
        return "404 Not Found", b"this process measures its memory only\n"
    try:
        seconds = float(parse_qs(asked.query).get("seconds", ["30"])[0])
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= _LONGEST:
        return "400 Bad Request", b"seconds: want more than 0, and 1800 at most\n"
    if not _measuring.acquire(blocking=False):
        return (
            "503 Service Unavailable",
            b"the memory is being measured already; try again when that has ended\n",
        )
    try:
        return "200 OK", json.dumps(memory(connection, seconds)).encode()
    finally:
        _measuring.release()


def memory(connection: socket.socket, seconds: float) -> dict[str, Any]:
    """Return what was allocated in some seconds and is in use at their end, as a speedscope profile.

    It ends early where the caller leaves.
    """
    import tracemalloc

    ours = not tracemalloc.is_tracing()
    if ours:
        tracemalloc.start(_DEPTH)
    try:
        _pause(connection, seconds)
        snapshot = tracemalloc.take_snapshot()
    finally:
        if ours:
            tracemalloc.stop()
    hidden = [tracemalloc.Filter(False, tracemalloc.__file__), tracemalloc.Filter(False, __file__)]
    statistics = snapshot.filter_traces(hidden).statistics("traceback")[:_MOST_STACKS]
    frames: dict[tuple[str, int], int] = {}
    functions: dict[str, list[tuple[int, int, str]]] = {}
    samples, weights = [], []
    for statistic in statistics:
        samples.append([frames.setdefault((f.filename, f.lineno), len(frames)) for f in statistic.traceback])
        weights.append(statistic.size)
    shared = [{"name": _function(functions, file, line), "file": file, "line": line} for file, line in frames]
    profile = {
        "type": "sampled",
        "name": f"memory of process {os.getpid()}",
        "unit": "bytes",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "fray",
        "shared": {"frames": shared},
        "profiles": [profile],
    }


def _pause(connection: socket.socket, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        connection.settimeout(min(left, 1.0))
        try:
            if not connection.recv(1):
                raise ConnectionError("the caller has gone")
        except TimeoutError:
            continue
    connection.settimeout(60)


def _function(known: dict[str, list[tuple[int, int, str]]], file: str, line: int) -> str:
    """Return the innermost function that a line of a file is in: tracemalloc has lines only."""
    if file not in known:
        known[file] = _functions(file)
    around = [(first, name) for first, last, name in known[file] if first <= line <= last]
    return max(around)[1] if around else "<module>"


def _functions(file: str) -> list[tuple[int, int, str]]:
    import ast

    try:
        with Path(file).open("rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [(n.lineno, n.end_lineno or n.lineno, n.name) for n in ast.walk(tree) if isinstance(n, kinds)]
