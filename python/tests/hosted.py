"""An actor that tests host in processes. They import this, but not pytest, which is slower."""

from __future__ import annotations

import os
from pathlib import Path

from fray.cluster import current_cluster
from fray.rpc import ActorContext, ActorHandle, ActorServer, method


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.n = 0
        self.log: list[int] = []

    def increment(self, by: int = 1) -> int:
        self.n += by
        self.log.append(by)
        return self.n

    def seen(self) -> list[int]:
        return self.log

    def boom(self) -> None:
        try:
            raise KeyError("inner")
        except KeyError as err:
            raise ValueError("no such lesson") from err

    def die(self) -> None:
        os._exit(3)

    @method(idempotent=True)
    def pid_after(self, path: str) -> int:
        """Die at the first call."""
        if not Path(path).exists():
            Path(path).touch()
            os._exit(3)
        return os.getpid()

    def same(self, value: object) -> object:
        return value

    def itself(self, ctx: ActorContext) -> ActorHandle:
        return ctx.resolver.lookup("counter")

    def by_handle(self, other: ActorHandle, by: int) -> int:
        result: int = other.increment(by)
        return result

    def _hidden(self) -> None:
        self.n += 1000


def host(*names: str) -> None:
    server = ActorServer(current_cluster())
    counter = Counter()
    for name in names:
        server.register(name, counter)
    server.serve()
