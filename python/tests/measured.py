"""Programs of their own whose memory is measured: a server of an actor, and a client of a hostile one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

LIMIT = 64 << 20
"""What both declare, in bytes."""


class Taker:
    """An actor that takes anything."""

    def any(self, value: Any) -> str:
        """Return what it was given."""
        return type(value).__name__


def peak() -> int:
    """Return the most memory that this process had, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmHWM")


def serve() -> None:
    """Serve until the input ends; print the address before, and the peak after."""
    from fray.cluster import LocalCluster
    from fray.rpc.server import ActorServer

    with LocalCluster() as cluster, ActorServer(cluster, max_message_bytes=LIMIT, keepalive=300) as server:
        server.register("taker", Taker())
        print(server.address, flush=True)
        sys.stdin.read()
        print(peak(), flush=True)
    os._exit(0)


def call(address: str) -> None:
    """Call three times; print what comes of it, and the peak."""
    from fray.rpc import FixedResolver
    from fray.rpc.errors import ActorError

    resolver = FixedResolver(address)
    actor = resolver.lookup("taker")
    for _ in range(3):
        try:
            print("returned", type(actor.any(1)).__name__, flush=True)
        except ActorError as err:
            print(err.code, flush=True)
    print(peak(), flush=True)
    os._exit(0)


class Measured:
    """Such a program, while it runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def line(self) -> str:
        """Return the next line that it printed."""
        return cast("IO[str]", self._process.stdout).readline().strip()

    def end(self) -> int:
        """Let a server end; return its peak in bytes."""
        cast("IO[str]", self._process.stdin).close()
        return int(self.line())


@contextmanager
def measured(*args: str) -> Iterator[Measured]:
    """Run such a program."""
    command = [sys.executable, __file__, *args]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Measured(process)
        finally:
            process.kill()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        call(sys.argv[2])
