"""Where actors listen, by name: the part of the registry that decides. It has no clock and does no I/O.

Every change has a version, so that a client which knows one is sent only what came after it.
"""

from __future__ import annotations

import collections
import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fray.cluster.errors import AlreadyExistsError
from fray.cluster.types import ActorChanges, ActorEndpoint, ActorId, JobId, Namespace

_REMEMBERED = 10_000
"""Changes that are kept for clients which know an older version; others are sent everything."""


@dataclass(frozen=True)
class Registration:
    """An endpoint with what decides how long it lives, and what it replaces."""

    endpoint: ActorEndpoint
    attempt: int = 0
    """Of its job. It goes when that attempt has ended; 0: when the job has."""
    unique: bool = False
    expires: float | None = None
    """Unix time in seconds; None: never."""

    def replaces(self, other: Registration) -> bool:
        """Whether this is the actor that another registration is of, as a fray cluster decides it."""
        mine, its = self.endpoint, other.endpoint
        same = mine.job_id == its.job_id and mine.task == its.task
        return mine.actor_id == its.actor_id or (
            same and (self.attempt != other.attempt or mine.address == its.address or self.unique)
        )


@dataclass(frozen=True)
class Selection:
    """Which endpoints a client watches: those of a name, or of all names that begin with a prefix."""

    namespace: Namespace
    name: str = ""
    prefix: str = ""

    def has(self, endpoint: ActorEndpoint) -> bool:
        """Whether an endpoint is among them."""
        if endpoint.namespace != self.namespace:
            return False
        return endpoint.name == self.name if self.name else endpoint.name.startswith(self.prefix)


@dataclass(frozen=True)
class Change:
    """What one call changed: what is to be kept, and what is to be forgotten."""

    added: tuple[Registration, ...] = ()
    removed: tuple[ActorId, ...] = ()


class EndpointTable:
    """Endpoints of all namespaces, in the order of their registration."""

    def __init__(self, registrations: Iterable[Registration] = ()) -> None:
        self._entries = {each.endpoint.actor_id: each for each in registrations}
        self._changes: collections.deque[tuple[ActorEndpoint, bool]] = collections.deque(maxlen=_REMEMBERED)
        self.version = 0
        """Counts changes of endpoints."""

    def register(self, new: Registration) -> Change:
        """Add an endpoint, or change the one that has its id.

        Raises:
            AlreadyExistsError: the name is another actor's, and one of the two is unique.
        """
        same = [
            other
            for other in self._entries.values()
            if other.endpoint.name == new.endpoint.name and other.endpoint.namespace == new.endpoint.namespace
        ]
        for other in same:
            if not new.replaces(other) and (new.unique or other.unique):
                raise AlreadyExistsError(
                    f'actor "{new.endpoint.name}" of namespace {new.endpoint.namespace} is at '
                    f"{other.endpoint.address}; unregister that, or choose another name"
                )
        actor_id = new.endpoint.actor_id
        gone = [o.endpoint.actor_id for o in same if new.replaces(o) and o.endpoint.actor_id != actor_id]
        removed = self.drop(gone).removed
        known = self._entries.get(actor_id)
        self._entries[actor_id] = new
        if known is None or known.endpoint != new.endpoint:
            self._note(new.endpoint, there=True)
        return Change((new,), removed)

    def drop(self, actor_ids: Iterable[ActorId]) -> Change:
        """Forget endpoints. Those that are not known change nothing."""
        removed = []
        for actor_id in actor_ids:
            known = self._entries.pop(actor_id, None)
            if known is not None:
                self._note(known.endpoint, there=False)
                removed.append(actor_id)
        return Change(removed=tuple(removed))

    def prune(self, lives: Callable[[Registration], bool]) -> Change:
        """Forget the endpoints whose task lives no more."""
        return self.drop([i for i, each in self._entries.items() if not lives(each)])

    def expire(self, now: float) -> Change:
        """Forget what was not renewed until now, a Unix time in seconds."""
        return self.prune(lambda each: each.expires is None or each.expires > now)

    @property
    def next_expiry(self) -> float | None:
        """When the next endpoint expires, a Unix time in seconds; None: none does."""
        return min((e.expires for e in self._entries.values() if e.expires is not None), default=None)

    def of_job(self, job_id: JobId) -> list[Registration]:
        """Return the registrations of a job's tasks."""
        return [each for each in self._entries.values() if each.endpoint.job_id == job_id]

    def named(self, namespace: Namespace, name: str, job_id: str = "") -> list[ActorEndpoint]:
        """Return the endpoints of exactly this name, the oldest first; with a job those of its tasks."""
        found = self.select(Selection(namespace, name))
        return [each for each in found if job_id in ("", each.job_id)]

    def select(self, wanted: Selection) -> list[ActorEndpoint]:
        """Return the endpoints that are selected, by name, then the oldest first."""
        found = [each.endpoint for each in self._entries.values() if wanted.has(each.endpoint)]
        return sorted(found, key=lambda e: e.name)

    def near(self, namespace: Namespace, name: str) -> list[str]:
        """Return names of a namespace that are spelled alike."""
        there = {
            each.endpoint.name for each in self._entries.values() if each.endpoint.namespace == namespace
        }
        return difflib.get_close_matches(name, there)

    def since(self, wanted: Selection, version: int | None) -> ActorChanges | None:
        """Return what changed among selected endpoints after a version; None: nothing.

        Without a version, or after one that is not remembered, it is everything there is.
        """
        if version is None or not self.version - len(self._changes) <= version <= self.version:
            return ActorChanges(reset=True, added=tuple(self.select(wanted)))
        later = list(self._changes)[len(self._changes) - (self.version - version) :]
        last = {e.actor_id: there for e, there in later if wanted.has(e)}  # of each, in this order
        if not last:
            return None
        added = [self._entries[i].endpoint for i, there in last.items() if there]
        return ActorChanges(
            reset=False, added=tuple(added), removed=tuple(i for i, there in last.items() if not there)
        )

    def _note(self, endpoint: ActorEndpoint, there: bool) -> None:
        self._changes.append((endpoint, there))
        self.version += 1
