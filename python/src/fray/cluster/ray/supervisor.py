"""The supervisor of one job: a detached Ray actor, which Ray restarts where it is lost.

That of a job with one task holds the task's resources itself and runs its program, so that a start costs one
Ray worker. That of a gang holds a placement group with a runner in each bundle, see `gang`. What is to
survive it is in the registry; a restarted supervisor begins the next attempt.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fray.cluster.errors import ClusterUnavailableError
from fray.cluster.ray.calls import Calls
from fray.cluster.ray.demand import SLICE_LABEL, demand_of
from fray.cluster.ray.gang import Gang
from fray.cluster.ray.naming import REGISTRY, supervised
from fray.cluster.ray.nodes import read
from fray.cluster.ray.placing import alone
from fray.cluster.ray.records import Job, Place
from fray.cluster.ray.task import Task

_TIMEOUT = 600.0  # seconds that the registry may be away
_IDLE = 120.0  # seconds without a run after which it asks whether there will be one


class Supervisor:
    """Runs a job to its end."""

    def __init__(self, namespace: str, package: str, name: str) -> None:  # noqa: ARG002
        import ray

        self._ray: Any = ray
        self._job_id = supervised(name)
        self.holder = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._registry = Calls(lambda: ray.get_actor(REGISTRY, namespace=namespace), "Ray", _TIMEOUT)
        self._running = threading.Lock()
        self._changed = threading.Condition()
        self._task: Task | None = None
        self._gang: Gang | None = None
        self._stopped = False
        self._runs = 0  # under way
        threading.Thread(target=self._leave_unasked, name="fray idle", daemon=True).start()

    def run(self, job: Job) -> None:
        """Run it to its end; a second call while one is under way waits for that."""
        self._count(1)
        try:
            with self._running:
                self._run(job)
        finally:
            self._count(-1)

    def _count(self, runs: int) -> None:
        with self._changed:
            self._runs += runs
            self._changed.notify_all()

    def _leave_unasked(self) -> None:
        """End this actor, which frees its resources, once the registry runs it no more and its job is over.

        Ray starts a supervisor again that its registry was about to end when it was killed.
        """
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._runs)
                if self._changed.wait_for(lambda: bool(self._runs), _IDLE):
                    continue
            if not self._is_needed():
                # In order, as when the registry ends it.
                self._ray.get_runtime_context().current_actor.leave.remote()
                return

    def _is_needed(self) -> bool:
        try:
            return bool(self._registry.call("is_living", self._job_id))
        except ClusterUnavailableError:  # a registry that comes back makes another one
            return False

    def _run(self, job: Job) -> None:
        if alone(job):
            self._repeat(lambda: self._attempt(job))
            return
        gang = self._gang = Gang(self._ray, job, demand_of(job.launch.request), self._registry, self.holder)
        try:
            self._repeat(gang.attempt)
        finally:
            gang.release()

    def _repeat(self, attempt: Callable[[], float | None]) -> None:
        while not self._stopped:
            pause = attempt()
            if pause is None:
                return
            with self._changed:
                self._changed.wait_for(lambda: self._stopped, pause)

    def _attempt(self, job: Job) -> float | None:
        """Run one attempt, and return after how many seconds the next is to follow, None: none is."""
        context = self._ray.get_runtime_context()
        place = Place(context.get_node_id(), self._ray.util.get_node_ip_address())
        if job.launch.request.resources.tpu:
            node = read().get(place.node)
            place = replace(place, slice=node.labels.get(SLICE_LABEL, "") if node else "")
        started = self._registry.call("begin", job.job_id, self.holder, [place])
        if started is None:
            return None
        task = Task(job, started, 0, [place], self._registry)
        with self._changed:
            if self._stopped:
                task.stop(0)
            self._task = task
        end = task.run()
        pause: float | None = self._registry.call("finish", job.job_id, started.attempt, [end])
        return pause

    def stop(self, attempt: int, grace: float) -> None:  # noqa: ARG002
        """End its program, and return when that and all that it started have ended."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            task, gang = self._task, self._gang
        if task is not None:
            task.stop(grace)
        if gang is not None:
            gang.stop(grace)
        with self._running:
            return
