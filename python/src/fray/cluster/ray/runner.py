"""Runs the tasks of a gang that have one bundle: a Ray actor of their supervisor, which ends with it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from typing import Any

from fray.cluster.ray.calls import Calls
from fray.cluster.ray.naming import REGISTRY
from fray.cluster.ray.records import Job, Place, Started, TaskEnd
from fray.cluster.ray.task import Task


class Runner:
    """Runs one task at a time."""

    def __init__(self, namespace: str, package: str, name: str) -> None:  # noqa: ARG002
        import ray

        self._ray: Any = ray
        self._registry = Calls(lambda: ray.get_actor(REGISTRY, namespace=namespace), "Ray", 600.0)
        self._task: Task | None = None

    def place(self) -> tuple[str, str, int]:
        """Return the id of the node, its address, and a free port."""
        context = self._ray.get_runtime_context()
        with contextlib.closing(socket.socket()) as listener:
            listener.bind(("", 0))
            port = listener.getsockname()[1]
        return context.get_node_id(), self._ray.util.get_node_ip_address(), port

    def run(
        self, job: Job, started: Started, index: int, places: Sequence[Place], coordinator: str
    ) -> TaskEnd:
        """Run a task to its end."""
        self._task = Task(job, started, index, places, self._registry, coordinator)
        return self._task.run()

    def stop(self, grace: float) -> None:
        """Have the task end, by force after so many seconds, and return at once."""
        if self._task is not None:
            self._task.stop(grace)
