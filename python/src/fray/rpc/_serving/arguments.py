"""The calls of a caller that wait for parts of their arguments, or behind one that does.

Receiving the parts is left to `_serving.session`.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar


class Held(Protocol):
    """A call, as it waits here."""

    seq: int
    complete: bool
    """Its arguments are here."""

    @property
    def over(self) -> bool:
        """Whether it was answered."""
        ...

    @property
    def held_for(self) -> str:
        """The name of its actor."""
        ...


H = TypeVar("H", bound=Held)


class Arguments(Generic[H]):
    """By actor, in the order of their numbers. The caller's turn guards it."""

    def __init__(self) -> None:
        self._held: dict[str, list[H]] = {}

    def holds(self, call: H) -> bool:
        """Take a call that has to wait; return whether it has."""
        held = self._held.get(call.held_for)
        if held is None:
            if call.complete:
                return False
            held = self._held[call.held_for] = []
        at = len(held)  # before those of later numbers: it may be sent again
        while at and held[at - 1].seq > call.seq:
            at -= 1
        held.insert(at, call)
        return True

    def release(self) -> list[H]:
        """Return what need not wait any more."""
        ready = []
        for name, held in list(self._held.items()):
            while held and (held[0].complete or held[0].over):
                ready.append(held.pop(0))
            if not held:
                del self._held[name]
        return ready

    def behind(self, broken: set[H]) -> list[H]:
        """Return calls of which no more will come, and those that wait behind them."""
        found = []
        for held in self._held.values():
            behind = False
            for call in held:
                behind = behind or call in broken
                if behind:
                    found.append(call)
        return found
