"""Resets connections and threads in a process that was forked: there they are of no use.

How an object begins anew is left to the object.
"""

from __future__ import annotations

import os
import weakref
from functools import cache
from typing import Protocol


class Forgetful(Protocol):
    """An object that begins anew in a child process, where its threads and locks are of no use."""

    def forget_parent(self) -> None:
        """Begin anew."""
        ...


def begins_anew(what: Forgetful) -> None:
    """Have `what` begin anew in processes that are forked from this one."""
    _known().add(what)


@cache
def _known() -> weakref.WeakSet[Forgetful]:
    known: weakref.WeakSet[Forgetful] = weakref.WeakSet()

    def forget() -> None:
        for what in list(known):
            what.forget_parent()

    os.register_at_fork(after_in_child=forget)
    return known
