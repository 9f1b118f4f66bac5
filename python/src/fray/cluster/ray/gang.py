"""Attempts of a job with several tasks: all places are held before one starts, and all end together."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from typing import Any

from fray.cluster.ray.calls import Calls
from fray.cluster.ray.demand import Demand
from fray.cluster.ray.host import payload_of, remote_class, value_of
from fray.cluster.ray.nodes import loss_of, read
from fray.cluster.ray.places import Bundled, Places, SharedPlaces
from fray.cluster.ray.records import Job, Place, Started, TaskEnd
from fray.cluster.types import TaskState

_LOOK = 1.0  # seconds between two questions whether the attempt is still wanted
_SLACK = 5.0  # seconds beyond their grace that tasks get to end
_PAUSE = 1.0  # seconds after places were lost before they were used


class _LostError(Exception):
    """A runner is gone; the message has why."""


@dataclass(frozen=True)
class _Seats:
    """Runners in their places, in the order of the tasks."""

    runners: list[Any]
    places: list[Place]
    coordinator: str


class Gang:
    """Runs the attempts of a job, and holds its places in between."""

    def __init__(self, ray: Any, job: Job, demand: Demand, registry: Calls, holder: str) -> None:
        self._ray, self._job, self._demand = ray, job, demand
        self._registry, self._holder = registry, holder
        self._places = (
            SharedPlaces(ray, job.shared, demand) if job.shared else Places(ray, job.job_id, demand)
        )
        self._remote = remote_class(ray, job.namespace, job.launch.package, "fray.cluster.ray.runner:Runner")
        self._seats: _Seats | None = None
        self._stopped = threading.Event()
        self._grace = job.grace

    def stop(self, grace: float) -> None:
        """Have its tasks end, and begin no attempt any more."""
        self._grace = grace
        self._stopped.set()

    def attempt(self) -> float | None:
        """Run one attempt, and return after how many seconds the next is to follow, None: none is."""
        try:
            if self._seats is None:
                bundled = self._places.reserve(lambda: not self._stopped.is_set())
                if bundled is None:
                    return None
                self._seats = self._seat(bundled)
        except _LostError:
            self.release()
            return _PAUSE
        seats = self._seats
        started: Started | None = self._registry.call("begin", self._job.job_id, self._holder, seats.places)
        if started is None or self._stopped.is_set():
            return None
        return self._run(seats, started)

    def _seat(self, bundled: list[Bundled]) -> _Seats:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        runners = []
        for each in bundled:
            strategy = PlacementGroupSchedulingStrategy(self._places.group, each.bundle)
            options = {**self._demand.bundle.options(), "scheduling_strategy": strategy, "max_concurrency": 8}
            runners.append(self._remote.options(**options).remote())
        found = [self._answer(r.call.remote("place", payload_of())) for r in runners]
        places = [
            Place(node, address, each.slice, each.host)
            for (node, address, _), each in zip(found, bundled, strict=True)
        ]
        return _Seats(runners, places, f"{found[0][1]}:{found[0][2]}")

    def _answer(self, reference: Any) -> Any:
        try:
            return value_of(self._ray.get(reference))
        except self._ray.exceptions.RayActorError as err:
            raise _LostError(type(err).__name__) from err

    def _run(self, seats: _Seats, started: Started) -> float | None:
        running = {}
        for i, runner in enumerate(seats.runners):
            payload = payload_of(self._job, started, i, seats.places, seats.coordinator)
            running[runner.call.remote("run", payload)] = i
        try:
            ends = self._follow(running, seats, started)
        except _LostError as err:
            why = self._why_lost(seats) or f"a Ray worker of the gang was lost ({err})"
            self._registry.call("lose", self._job.job_id, started.attempt, why)
            self._end_tasks(running, seats)
            return self._afresh()
        pause: float | None = self._registry.call("finish", self._job.job_id, started.attempt, ends)
        return self._afresh() if pause is None else pause  # unless the job has ended, a loss was noted before

    def _why_lost(self, seats: _Seats) -> str:
        """Return which node died, "" if none is known to be; a call may fail before Ray's table knows."""
        until = time.monotonic() + _SLACK
        while not (why := loss_of(seats.places, read())) and time.monotonic() < until:
            self._stopped.wait(_LOOK / 4)
        return why

    def _afresh(self) -> float | None:
        """Give the places up; return 0 if another attempt is to follow, None if the job has ended."""
        self.release()
        return 0.0 if not self._stopped.is_set() and self._registry.call("alive", self._job.job_id) else None

    def _follow(self, running: dict[Any, int], seats: _Seats, started: Started) -> list[TaskEnd]:
        """Return the ends of all tasks, once they have ended by themselves or because one failed."""
        ends: list[TaskEnd] = []
        asked = time.monotonic()
        while running:
            done, _ = self._ray.wait(list(running), timeout=_LOOK / 4)
            for reference in done:
                ends.append(self._answer(reference))
                del running[reference]
            over = self._stopped.is_set()
            if not over and time.monotonic() - asked >= _LOOK:
                asked = time.monotonic()
                over = not self._registry.call("wanted", self._job.job_id, started.attempt)
            if over or any(end.state is TaskState.FAILED for end in ends):
                return ends + self._end_tasks(running, seats)
        return ends

    def _end_tasks(self, running: dict[Any, int], seats: _Seats) -> list[TaskEnd]:
        """End the tasks that run, and return how those ended that could be asked."""
        for index in running.values():
            seats.runners[index].call.remote("stop", payload_of(self._grace))
        ends, until = [], time.monotonic() + self._grace + _SLACK
        while running and time.monotonic() < until:
            done, _ = self._ray.wait(list(running), timeout=_LOOK / 4)
            for reference in done:
                del running[reference]
                with contextlib.suppress(_LostError):
                    ends.append(self._answer(reference))
            if running and loss_of([seats.places[i] for i in running.values()], read()):
                break
        return ends

    def release(self) -> None:
        """Give the places up, which ends the runners and all that they started."""
        if (
            self._seats and self._job.shared
        ):  # whose places stay; those of a group that is removed end with it
            leaving = [runner.leave.remote() for runner in self._seats.runners]
            self._ray.wait(leaving, num_returns=len(leaving), timeout=_SLACK)
        self._seats = None
        self._places.release()
