"""What hosts remember, so that lost answers do no harm: what was put; what was taken and not acknowledged."""

from __future__ import annotations

import secrets
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

_KEPT = 1_000_000  # ids that are known to have been put

T = TypeVar("T")


class Once:
    """Ids of what has been put, the last ones."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: OrderedDict[Hashable, None] = OrderedDict()

    def __contains__(self, known: Hashable) -> bool:
        """Whether an id was noted."""
        return known in self._known

    def add(self, known: Hashable) -> None:
        """Note an id."""
        self._known[known] = None
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)


class Taken(Generic[T]):
    """What was taken and is not acknowledged."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._instance = secrets.token_hex(4)
        self._count = 0
        self._open: dict[str, tuple[str, Hashable, T]] = {}
        self._again: deque[tuple[str, Hashable, T]] = deque()

    def __len__(self) -> int:
        """How much there is, what is to come again included."""
        return len(self._open) + len(self._again)

    def new_id(self) -> str:
        """Return an id that no other batch has."""
        self._count += 1
        return f"{self._instance}-{self._count}"

    def give(self, known: str, tag: Hashable, value: T, consumer: str) -> None:
        """Note that a consumer has it; without one it counts as acknowledged at once."""
        if consumer:
            self._open[known] = (consumer, tag, value)

    def next(self, tag: Hashable | None, consumer: str) -> tuple[str, Hashable, T] | None:
        """Return what the consumer has already, as its answer may be lost, else what comes again."""
        for known, (holder, of, value) in self._open.items() if consumer else ():
            if holder == consumer and (tag is None or of == tag):
                return known, of, value
        for i, each in enumerate(self._again):
            if tag is None or each[1] == tag:
                del self._again[i]
                return each
        return None

    def ack(self, known: str) -> None:
        """Forget it, also where it was to come again."""
        self._open.pop(known, None)
        self._again = deque(each for each in self._again if each[0] != known)

    def release(self, consumer: str) -> None:
        """Let what a consumer has come again, in its order."""
        for known in [known for known, (holder, _, _) in self._open.items() if holder == consumer]:
            _, tag, value = self._open.pop(known)
            self._again.append((known, tag, value))
