"""The actors of the scenarios. Both engines make them in processes of their own."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any


class FirstError(ValueError):
    """One of the program's own."""


class Counter:
    """Counts in memory, and in a file what ran, which outlives it."""

    def __init__(self, start: int = 0, notes: str = "") -> None:
        self.value, self.notes = start, Path(notes)

    def increment(self, by: int = 1) -> int:
        """Return the new count."""
        self.value += by
        return self.value

    def read(self) -> int:
        """Return the count."""
        return self.value

    def append(self, text: str) -> str:
        """Write a line down, and return it."""
        with self.notes.open("a") as file:
            file.write(f"{text}\n")
        return text

    def lines(self) -> int:
        """Return how many lines are written down."""
        return len(self.notes.read_text().splitlines()) if self.notes.exists() else 0

    def die(self, status: int = 1) -> None:
        """End the process in the midst of a call."""
        self.append("die")
        os._exit(status)

    def die_until(self, times: int) -> int:
        """End the process in the first calls; return how many there were."""
        self.append("run")
        if self.lines() <= times:
            os._exit(1)
        return self.lines()

    def fail_until(self, times: int, kind: str = "value") -> int:
        """Raise in the first calls; return how many there were."""
        self.append("run")
        if self.lines() <= times:
            raise {"value": ValueError, "first": FirstError, "key": KeyError}[kind]("not yet")
        return self.lines()

    def fail_then_die(self) -> int:
        """Raise in the first call, end the process in the second, and raise in the third."""
        self.append("run")
        if self.lines() == 2:
            os._exit(1)
        if self.lines() <= 3:
            raise ValueError("not yet")
        return self.lines()

    def pid(self) -> int:
        """Return the process."""
        return os.getpid()

    def raises(self, text: str) -> None:
        """Raise the program's own error."""
        raise FirstError(text)

    def wait_for(self, path: str) -> int:
        """Return the count once a file is there; another one says that it waits."""
        Path(f"{path}.begun").touch()
        while not Path(path).exists():
            time.sleep(0.005)
        return self.value


class Broken:
    """Cannot be constructed."""

    def __init__(self) -> None:
        raise FirstError("no such weights")

    def read(self) -> int:
        """Never run."""
        return 0


class Once:
    """Can be constructed once only."""

    def __init__(self, notes: str) -> None:
        with Path(notes).open("a") as file:
            file.write("made\n")
        if len(Path(notes).read_text().splitlines()) > 1:
            raise FirstError("the port is taken")

    def die(self) -> None:
        """End the process."""
        os._exit(1)

    def read(self) -> int:
        """Return 1."""
        return 1


class Meeting:
    """Calls of it end only when several of them run at a time."""

    def __init__(self, parties: int) -> None:
        self.barrier = threading.Barrier(parties)
        self.running = self.most = 0
        self.lock = threading.Lock()

    def meet(self, seconds: float = 20) -> bool:
        """Report whether all have come in time."""
        try:
            self.barrier.wait(seconds)
        except threading.BrokenBarrierError:
            return False
        return True

    def crowd(self) -> None:
        """Note how many run at a time."""
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(0.05)
        with self.lock:
            self.running -= 1

    def at_most(self) -> int:
        """Return how many have run at a time."""
        return self.most


class Asynchronous:
    """Has methods that are coroutines."""

    def __init__(self) -> None:
        self.event, self.cancelled, self.here = asyncio.Event(), False, 0

    async def meet(self, parties: int) -> bool:
        """Return once so many calls have come."""
        self.here += 1
        while self.here < parties:
            await asyncio.sleep(0.005)
        return True

    async def forever(self) -> None:
        """Wait until it is cancelled."""
        self.here += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    async def begun(self) -> bool:
        """Return once `forever` runs."""
        return await self.meet(1)

    async def was_cancelled(self) -> bool:
        """Report whether `forever` was."""
        return self.cancelled

    async def numbers(self, count: int) -> AsyncIterator[int]:
        """Yield numbers."""
        for i in range(count):
            yield i


class Streaming:
    """Has methods that are generators."""

    def __init__(self, notes: str = "") -> None:
        self.notes = Path(notes)

    def numbers(self, count: int) -> Iterator[int]:
        """Yield numbers."""
        i = 0
        while i < count:  # Ray sends values into generators, which `yield from range` does not take
            yield i
            i += 1

    def breaks(self, after: int) -> Iterator[int]:
        """Yield numbers, then raise."""
        i = 0
        while i < after:
            yield i
            i += 1
        raise FirstError("the source is gone")

    def endless(self) -> Iterator[int]:
        """Yield numbers until it is closed, and write that down."""
        i = 0
        try:
            while True:
                yield i
                i += 1
        finally:
            self.notes.write_text("closed")

    def blocks(self, count: int, size: int) -> Iterator[bytes]:
        """Yield large items."""
        for i in range(count):
            yield bytes([i]) * size

    def nothing(self) -> Iterator[int]:
        """Yield nothing."""
        yield from ()


class Caller:
    """Calls another actor, of which it gets the handle."""

    def __init__(self, get: Any, other: Any = None) -> None:
        self.get, self.other = get, other

    def ask(self) -> Any:
        """Call the actor that the constructor was given."""
        return self.get(self.other.increment.remote())

    def ask_of(self, other: Any) -> Any:
        """Call an actor that is an argument."""
        return self.get(other.increment.remote())


class Worker:
    """Of a pool."""

    def double(self, value: int) -> int:
        """Return the double."""
        return 2 * value

    def slowly(self, value: int, path: str) -> int:
        """Return the double, of odd numbers once a file is there."""
        while value % 2 and not Path(path).exists():
            time.sleep(0.005)
        return 2 * value

    def fails(self, value: int) -> int:
        """Raise for 1."""
        if value == 1:
            raise FirstError("one")
        return value
