"""Actors whose calls end when a test wants it."""

from __future__ import annotations

import asyncio
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
