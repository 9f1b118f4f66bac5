"""Actors whose calls end when a test wants it."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any


class Gate:
    """Calls wait until what they are for is opened."""

    def __init__(self) -> None:
        self._opened: dict[Any, asyncio.Event] = {}

    def _event(self, what: Any) -> asyncio.Event:
        return self._opened.setdefault(what, asyncio.Event())

    async def passes(self, what: Any) -> Any:
        await self._event(what).wait()
        return what

    async def fails(self, what: Any) -> None:
        await self._event(what).wait()
        raise ValueError(what)

    async def waits(self, what: Any) -> bool:
        """Return whether a call waits for it."""
        return what in self._opened

    async def open(self, what: Any) -> None:
        self._event(what).set()


class Log:
    """Notes what it is called with, in that order."""

    def __init__(self) -> None:
        self._noted: list[Any] = []

    def note(self, value: Any, other: Any = None) -> Any:
        self._noted.append(value if other is None else [value, other])
        return value

    def noted(self) -> list[Any]:
        return self._noted

    def fail(self, text: str) -> None:
        raise ValueError(text)


class Fragile:
    """Notes what it works on in a file, and dies of some of it."""

    def __init__(self, notes: str) -> None:
        self._notes = os.open(notes, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)

    def work(self, value: int, dies: bool) -> int:
        os.write(self._notes, f"{value}\n".encode())
        if dies:
            os._exit(1)
        return value


class Flaky:
    """Raises as often as it is told to, and counts its runs."""

    def __init__(self, runs: int = 0) -> None:
        self._runs = runs

    def fails(self, times: int) -> int:
        self._runs += 1
        if self._runs <= times:
            raise ValueError(self._runs)
        return self._runs

    def runs(self) -> int:
        return self._runs


class Busy(Log):
    """Is busy until a file exists."""

    def until(self, path: str) -> str:
        Path(f"{path}.begun").touch()
        while not Path(path).exists():
            time.sleep(0.01)
        return path
