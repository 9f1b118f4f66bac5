"""Streams that callers of actorrpc/chaos loop over. The files' lines are as oracle_test.go reads them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chaos_values import Receipt, Ticket
from fray.rpc import ActorFuture, ActorHandle
from fray.rpc.errors import ActorError

TIMEOUT = 60.0
SHORT, LONG = 40, 1500  # items
LARGE = 40_000
"""Bytes of an item, so that connections are cut within them."""
SLOW = 2_000
"""Microseconds in which an item is made."""
PAUSE = 0.02
"""Seconds after which one is taken."""
NO_STREAM = -1


class Files(NamedTuple):
    """Descriptors of the files in which callers write what they have seen."""

    outcomes: int
    received: int


@dataclass
class Outcome:
    """What became of a call."""

    caller: str
    seq: int
    timeout: float
    retries: int = 0
    items: int = NO_STREAM
    window: int = 0
    pickled: bool = False
    began: float = field(default_factory=time.monotonic)
    kind: str = "ok"
    code: str = "-"
    life: str = "-"
    count: int = 0

    @contextlib.contextmanager
    def failures(self) -> Iterator[None]:
        """Note what is raised."""
        try:
            yield
        except ActorError as err:
            self.kind, self.code = "maybe" if err.ran else "not", err.code.value
        except Exception as err:
            self.kind, self.code = "other", repr(err).replace(" ", "_")

    def write(self, files: Files) -> None:
        took = 1000 * (time.monotonic() - self.began)
        line = (
            f"{self.caller} {self.seq} {self.kind} {self.code} {self.life} {self.count} {took:.0f}"
            f" {1000 * self.timeout:.0f} {self.retries} {self.items} {self.window}"
            f" {str(self.pickled).lower()}\n"
        )
        os.write(files.outcomes, line.encode())


@dataclass
class Asked:
    """What a stream is to be."""

    handle: ActorHandle
    seq: int
    items: int
    method: str
    options: dict[str, Any]
    padding: int = 0
    takes: int = 0
    fails: bool = False
    leave: int = -1
    """After how many items the loop is left; negative: never."""
    leaving: str = "break"
    pause: float = 0
    between: bool = False
    """Items lead to other calls."""

    @classmethod
    def drawn(cls, drawing: random.Random, handle: ActorHandle, seq: int) -> Asked:
        """Draw one."""
        method = drawing.choice(["numbers", "numbers", "later", "receipts"])
        asked = cls(handle, seq, drawing.randrange(SHORT), method, {"timeout": TIMEOUT})
        asked.options["stream_window"] = drawing.choice([0, 1, 3, 20])
        match drawing.randrange(6):
            case 0:
                asked.padding = drawing.randrange(LARGE)
            case 1:
                asked.takes = drawing.randrange(SLOW)
            case 2:
                asked.items = drawing.randrange(LONG)
            case 3:
                asked.pause = drawing.random() * PAUSE
            case 4:
                asked.between = True
        match drawing.randrange(6):
            case 0:
                asked.options["timeout"] = drawing.uniform(0.001, 0.3)
            case 1 | 2:
                asked.leave = drawing.randrange(asked.items + 1)
                asked.leaving = drawing.choice(["break", "close", "cancel", "async"])
            case 3:
                asked.options |= {"retries": drawing.randrange(1, 4), "retry_exceptions": True}
                asked.fails = drawing.random() < 0.5
                asked.items //= 1 + 20 * drawing.randrange(2)  # it runs again only where no item came
        return asked

    def start(self, caller: str) -> ActorFuture[Any] | ActorError:
        """Make the call. A class that its server does not take may be rejected at once."""
        method = self.handle.options(**self.options)[self.method]
        rest = self.items, self.padding, self.takes, self.fails
        if self.method == "receipts":
            try:
                return method.remote(Ticket(caller, self.seq, None), *rest)
            except ActorError as err:
                return err
        return method.remote(caller, self.seq, *rest)


def follow(
    files: Files,
    caller: str,
    asked: Asked,
    future: ActorFuture[Any] | ActorError,
    meanwhile: Callable[[int], None],
) -> None:
    """Loop over a stream, and write each item that comes and what became of it."""
    outcome = Outcome(
        caller,
        asked.seq,
        asked.options["timeout"],
        asked.options.get("retries", 0),
        asked.items,
        asked.options["stream_window"],
        asked.method == "receipts",
    )

    def take(item: Any, taken: int) -> None:
        if isinstance(item, Receipt):
            item = f"{item.life} {item.count} {item.number}"
        outcome.life, count, number = item.split()[:3]
        outcome.count = int(count)
        os.write(files.received, f"{caller} {asked.seq} {outcome.life} {count} {number}\n".encode())
        if taken != asked.leave:
            time.sleep(asked.pause)
            meanwhile(taken)

    with outcome.failures():
        if isinstance(future, ActorError):
            raise future
        if asked.leave == 0:
            future.cancel()
            outcome.kind = "left"
        elif asked.leaving == "async":
            left = asyncio.run(_loop_async(future, asked.leave, take))
            outcome.kind = "left" if left else "ok"
        else:
            stream = future.result()
            for taken, item in enumerate(stream, 1):
                take(item, taken)
                if taken == asked.leave:
                    outcome.kind = "left"
                    if asked.leaving == "close":
                        stream.close()
                    elif asked.leaving == "cancel":
                        future.cancel()
                    break
    outcome.write(files)


async def _loop_async(future: ActorFuture[Any], leave: int, take: Callable[[Any, int], None]) -> bool:
    """Do so on an event loop; return whether the stream was left."""
    taken = 0
    async for item in future:
        taken += 1
        take(item, taken)
        if taken == leave:
            return True
    return False
