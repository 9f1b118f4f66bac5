"""A server process that stops or kills itself while a method runs. As a program it prints its address."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Dying:
    """Stops or kills its process."""

    def value(self, n: int) -> int:
        """Return `n`."""
        return n

    def stop(self) -> None:
        """Stop the process, as a machine does that hangs."""
        os.kill(os.getpid(), signal.SIGSTOP)
        threading.Event().wait()  # a signal takes a moment

    def die(self) -> None:
        """Kill the process."""
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()


@contextmanager
def dying() -> Iterator[str]:
    """Run a server with the actor `dying`; yields its address."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def main() -> None:
    """Serve until the input ends."""
    from fray.cluster import LocalCluster
    from fray.rpc.server import ActorServer

    with LocalCluster() as cluster, ActorServer(cluster) as server:
        server.register("dying", Dying())
        print(server.address, flush=True)
        sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
