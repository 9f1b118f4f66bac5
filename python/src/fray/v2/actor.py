"""Actors of a client: what creating one takes, groups of them, and where one is in its life.

Calling them is fray.rpc's. An actor is hosted by a job of its own or, where jobs are threads of this process,
in this process; both are a PendingActor until they answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from fray.cluster import Cluster, ClusterError, ResourceConfig, WaitTimeoutError
from fray.cluster.check import name_problem
from fray.rpc._serving.methods import methods_of, misfit
from fray.rpc.handle import ActorHandle
from fray.rpc.resolver import ClusterResolver
from fray.v2.options import ActorOptions
from fray.v2.types import JobHandle

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.25  # seconds between two polls of actors that are awaited
_LONGEST_WAIT = 10.0  # seconds of a poll that returns as soon as something happens


class ActorStatus(StrEnum):
    """Where an actor is in its life."""

    CREATING = "creating"
    """It has not answered so far."""
    READY = "ready"
    RESTARTING = "restarting"
    """It was there, and another attempt at it is on its way."""
    FAILED = "failed"
    """It is gone for good."""


class ActorCreationError(ClusterError):
    """An actor was not created: its constructor raised, or its job ended. Nothing of it is left.

    `type`, `message` and `traceback` are of the exception that the constructor raised; `type` is "" if it is
    not known to have raised one, and `message` is the reason then.
    """

    def __init__(self, actor: str, message: str, type: str = "", traceback: str = "") -> None:  # noqa: A002
        super().__init__(actor, message, type, traceback)
        self.actor, self.message, self.type, self.traceback = actor, message, type, traceback

    def __str__(self) -> str:
        kind = "" if self.type.startswith("fray.") else self.type  # whose message needs no type
        what = f"{kind}: {self.message}" if kind and self.message else self.message or self.type
        text = f'actor "{self.actor}" could not be created: {what}'
        return f"{text}\nThe constructor's traceback:\n{self.traceback.rstrip()}" if self.traceback else text


@dataclass(frozen=True)
class ActorSpec:
    """An actor to create."""

    name: str
    """The name in the namespace; its job is called "actor-NAME"."""
    actor_class: Any
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    pool: str = ""
    """The name that it has in common with the others of its group; "": it is of none."""
    resources: ResourceConfig = field(default_factory=ResourceConfig)
    options: ActorOptions = field(default_factory=ActorOptions)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that it is registered by."""
        return (self.name, self.pool) if self.pool else (self.name,)


def job_name(actor: str) -> str:
    """Return the name of the job that hosts an actor."""
    return f"actor-{actor}"


def check_spec(spec: ActorSpec) -> None:
    """Raise ActorCreationError if the actor can never be registered, as far as that can be seen here."""
    for name in (*spec.names, job_name(spec.name)):
        if problem := name_problem(name):
            raise ActorCreationError(spec.name, problem)
    if isinstance(spec.actor_class, type) and (
        problem := misfit(methods_of(spec.actor_class), spec.options.concurrency_groups)
    ):
        raise ActorCreationError(spec.name, problem)


class PendingActor(Protocol):
    """An actor that was created and may not answer yet."""

    @property
    def name(self) -> str:
        """Its name in the namespace."""
        ...

    @property
    def handle(self) -> ActorHandle[Any]:
        """What calls it; calls wait until it is there."""
        ...

    @property
    def job(self) -> JobHandle:
        """The job that hosts it."""
        ...

    @property
    def notified(self) -> bool:
        """Whether `poll` returns as soon as something happens, however long it may wait."""
        ...

    def poll(self, seconds: float) -> bool:
        """Report whether it answers, after waiting for that at most so long, or for something to happen.

        Raises:
            ActorCreationError: it never will. Nothing of it is left.
        """
        ...


class ActorGroup(Generic[T]):
    """Actors of one class under the names NAME_0, NAME_1 and so on, and all of them under NAME.

    The caller gives them work, and decides what becomes of the work of an actor that is lost. RoundRobin and
    LeastLoaded of fray.rpc spread calls over them.
    """

    def __init__(self, name: str, actors: Sequence[PendingActor]) -> None:
        self.name = name
        self._actors = tuple(actors)

    @property
    def handles(self) -> list[ActorHandle[T]]:
        """All of them, in order; calls wait until theirs is there."""
        return [actor.handle for actor in self._actors]

    @property
    def jobs(self) -> list[JobHandle]:
        """The jobs that host them, in the same order."""
        return [actor.job for actor in self._actors]

    def __len__(self) -> int:
        """Return how many there are to be."""
        return len(self._actors)

    def wait_ready(self, count: int | None = None, timeout: float | None = None) -> list[ActorHandle[T]]:
        """Block until `count` of them answer, and return the handles of those that do.

        Args:
            count: None: all.
            timeout: The longest wait in seconds; None: without end.

        Raises:
            ActorCreationError: so many failed for good that `count` cannot be reached.
            WaitTimeoutError: the time was over before. They are still on their way.
        """
        return wait_ready(self._actors, len(self._actors) if count is None else count, timeout)

    def terminate(self) -> None:
        """End all of them."""
        for actor in self._actors:
            actor.job.terminate()

    def __repr__(self) -> str:
        """Return name and size."""
        return f"<{len(self)} actors {self.name}>"


def handle_of(cluster: Cluster, name: str) -> ActorHandle[Any]:
    """Return a handle of an actor in the cluster's namespace; calls wait until there is one."""
    return ClusterResolver(cluster).existing(name)


def wait_ready(
    actors: Sequence[PendingActor], count: int, timeout: float | None = None
) -> list[ActorHandle[Any]]:
    """Block until `count` actors answer, see ActorGroup.wait_ready."""
    if not 0 <= count <= len(actors):
        raise ValueError(f"{count} of {len(actors)} actors can never be ready")
    until = None if timeout is None else time.monotonic() + timeout
    waiting, ready = list(actors), set[int]()
    failed: list[ActorCreationError] = []
    pause = _pause(waiting, 0.0) if count and len(waiting) == 1 and waiting[0].notified else 0.0
    while True:
        left = pause if until is None else max(0.0, min(pause, until - time.monotonic()))
        for i, actor in enumerate(list(waiting)):
            try:
                if actor.poll(0 if i else left):
                    ready.add(actors.index(actor))
                    waiting.remove(actor)
            except ActorCreationError as err:
                failed.append(err)
                waiting.remove(actor)
        if len(ready) >= count:
            return [actors[i].handle for i in sorted(ready)]
        if len(ready) + len(waiting) < count:
            raise failed[0]
        if until is not None and time.monotonic() >= until:
            names = ", ".join(actor.name for actor in waiting)
            raise WaitTimeoutError(
                f"{len(ready)} of {count} actors were ready after {timeout} s, not {names}"
            )
        pause = _pause(waiting, pause)


def _pause(waiting: Sequence[PendingActor], before: float) -> float:
    """Return for how many seconds the first of those that are awaited is polled next."""
    if waiting[0].notified:
        return _LONGEST_WAIT if len(waiting) == 1 else _LONGEST_PAUSE  # so that all are polled now and then
    return min(_LONGEST_PAUSE, before * 1.3 or _FIRST_PAUSE)
