"""Values of own classes, which callers and servers of actorrpc/chaos send each other."""

from __future__ import annotations

from dataclasses import dataclass
from pickle import PickleBuffer
from typing import Any


class Blob:
    """Bytes that are pickled out of band."""

    def __init__(self, data: Any) -> None:
        """Use any buffer."""
        self.data = bytes(data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blob) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return Blob, (PickleBuffer(self.data),)

    def __repr__(self) -> str:
        return f"<{len(self.data)} bytes>"


@dataclass
class Ticket:
    """The argument of a call."""

    caller: str
    seq: int
    data: Blob | None


@dataclass
class Receipt:
    """The result of a call, or an item of a stream."""

    life: str
    count: int
    """Which execution of that life it is."""
    number: int
    """Of the item, from 1 on; 0: it is a result."""
    ticket: Ticket
