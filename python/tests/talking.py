"""Actors that write, several in one process. Processes import this, but not pytest, which is slower."""

from __future__ import annotations

import asyncio
import logging
import sys

from fray.cluster import current_cluster
from fray.rpc import ActorServer


class Talker:
    def say(self, text: str) -> None:
        print("it says", text)
        logging.getLogger("talker").warning("logged %s", text)
        sys.stderr.write("two\nlines ")
        sys.stderr.write("more\n")
        print("no end", end="", flush=True)

    def boom(self) -> None:
        raise ValueError("no such lesson")


class AsyncTalker:
    async def say(self, text: str) -> None:
        async def later() -> None:
            await asyncio.sleep(0)
            print("a task says", text)

        print("it says", text, end=" ")
        await asyncio.create_task(later())
        print("again")


def host(*names: str) -> None:
    logging.basicConfig(format="%(message)s")
    server = ActorServer(current_cluster())
    for name in names:
        server.register(name, AsyncTalker() if name.startswith("async") else Talker())
    print("the process says hello")
    server.serve()
