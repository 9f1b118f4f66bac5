"""Processes whose memory is measured: a server of an actor, and a client of hostile servers."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from waiting import eventually

LIMIT = 16 << 20
"""The max_message_bytes of both processes."""


class Taker:
    """An actor that takes anything."""

    def any(self, value: Any) -> str:
        """Return the name of the type of `value`."""
        return type(value).__name__


def memory(line: str) -> int:
    """Return a line of this process's status in bytes: VmRSS is its memory, VmHWM the most that it had."""
    for found in Path("/proc/self/status").read_text().splitlines():
        if found.startswith(line):
            return int(found.split()[1]) << 10
    raise AssertionError(f"no {line}")


def in_use() -> int:
    """Return this process's memory in bytes, without what the allocator keeps of memory that was freed.

    Of small blocks in the arenas of many threads it keeps pages that only trimming gives back.
    """
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # of glibc
        trim(0)
    return memory("VmRSS")


def answer(base: int) -> int:
    """Print and return the memory; or with a base the peak, once at most one message is still in memory."""
    if base:
        eventually(lambda: in_use() < base + LIMIT * 5 // 4)
    found = memory("VmHWM" if base else "VmRSS")
    print(found, flush=True)
    return base or found


def serve() -> None:
    """Print the address; then the memory for the first line of input, and the peak for each further line."""
    from fray.cluster import LocalCluster
    from fray.rpc.server import ActorServer

    with LocalCluster() as cluster, ActorServer(cluster, max_message_bytes=LIMIT, keepalive=300) as server:
        server.register("taker", Taker())
        print(server.address, flush=True)
        base = 0
        for _ in sys.stdin:
            base = answer(base)
    os._exit(0)


def call() -> None:
    """Call the servers at the addresses of the input three times each.

    Print the outcomes, and then for the first server the memory, for each further the peak.
    """
    from fray.rpc import FixedResolver
    from fray.rpc.errors import ActorError
    from fray.rpc.options import ConnectionSettings

    base = 0
    for address in sys.stdin:
        resolver = FixedResolver(address.strip(), settings=ConnectionSettings(max_message_bytes=LIMIT))
        actor = resolver.lookup("taker")
        for _ in range(3):
            try:
                print(actor.any(1), flush=True)
            except ActorError as err:
                print(err.code, flush=True)
        base = answer(base)
    os._exit(0)


class Measured:
    """Such a process, while it runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._in, self._out = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)

    def send(self, line: str) -> None:
        """Write a line to its input."""
        print(line, file=self._in, flush=True)

    def line(self) -> str:
        """Return the next line that it prints."""
        return self._out.readline().strip()

    def memory(self) -> int:
        """Return what a server answers to a line of input, in bytes."""
        self.send("")
        return int(self.line())


@contextmanager
def measured(role: str) -> Iterator[Measured]:
    """Run such a process; `role` is serve or call."""
    command = [sys.executable, __file__, role]
    # Messages that are freed go back to the system, so that what is measured is what is in use.
    environ = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    ) as process:
        try:
            yield Measured(process)
        finally:
            process.kill()


if __name__ == "__main__":
    {"serve": serve, "call": call}[sys.argv[1]]()
