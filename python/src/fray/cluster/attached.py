"""What other parts of fray keep for a cluster, for as long as that is in use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar, cast


class Attachment(Protocol):
    """What is kept."""

    @property
    def busy(self) -> bool:
        """Whether something in it lives that is not to end before the cluster is shut down."""
        ...

    def close(self) -> None:
        """End what goes on for the cluster, which was shut down. It begins anew where it is needed again."""
        ...


_Kept = TypeVar("_Kept", bound=Attachment)

_NAME = "_fray_attached"


def attached(cluster: object, kind: type[_Kept], make: Callable[[], _Kept]) -> _Kept:
    """Return what a cluster has of a kind, which is made if there is none.

    The cluster itself holds it, so it may refer to the cluster without keeping it alive.
    """
    with _lock():
        kept: dict[type[Any], Attachment] = vars(cluster).setdefault(_NAME, {})
        if kind not in kept:
            kept[kind] = make()
        return cast("_Kept", kept[kind])


def close_attached(cluster: object) -> None:
    """Close all that a cluster has."""
    for each in _all(cluster):
        each.close()


def busy_attached(cluster: object) -> bool:
    """Return whether anything that a cluster has is busy."""
    return any(each.busy for each in _all(cluster))


def _all(cluster: object) -> list[Attachment]:
    with _lock():
        return list(vars(cluster).get(_NAME, {}).values())


@cache
def _lock() -> threading.RLock:
    return threading.RLock()
