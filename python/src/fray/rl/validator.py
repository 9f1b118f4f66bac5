"""The validator as a class of Python, for metrics of one's own."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from fray.rl import references
from fray.rl.config import setting
from fray.rl.execution import execute
from fray.rl.module import NexRLModule
from fray.rl.nexrl_types import Trajectory
from fray.rl.wire import Outcome, scores_of


class EmptyValidationError(ValueError):
    """There are no trajectories to make metrics of."""


class Validator(NexRLModule):
    """Collects trajectories of validation and makes metrics of them; subclasses may define `_metrics`."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self._config = config
        self._trajectories: list[Trajectory] = []
        self._lock = threading.Lock()

    def set_module_references(self, validate_dataloader: Any) -> None:
        """Set the loader whose tasks are rolled out: a reference, a handle, or an object of this process."""
        self._validate_dataloader = references.data_loader_of(validate_dataloader)

    def put_trajectory(self, trajectory: Trajectory) -> Outcome:
        """Keep a trajectory. Returns "success"."""
        with self._lock:
            self._trajectories.append(trajectory)
        return "success"

    def is_complete(self) -> bool:
        """Return whether all tasks of validation were given, and none is being rolled out."""
        status = execute(self._validate_dataloader.status)
        return bool(status["finished"] and not status["leased"])

    def compute_and_log_metrics(self) -> dict[str, float]:
        """Return the metrics with prefix "val/", post them to the run's loggers, and forget the trajectories.

        Raises:
            EmptyValidationError: there are no trajectories.
        """
        with self._lock:
            trajectories = list(self._trajectories)
        if not trajectories:
            raise EmptyValidationError("validation has no trajectories; has its loader any items?")
        metrics = {f"val/{name}": value for name, value in self._metrics(trajectories).items()}
        if self._activity_tracker is not None:
            step = self._activity_tracker.get_training_step()
            for backend in backends_of(self._config):
                # The same where it is computed again, as the answer was lost.
                known = f"{self._module_name}/{step}"
                self._activity_tracker.experiment_logger_post(backend, post_id=known, data=metrics, step=step)
        self.clear()
        return metrics

    def clear(self) -> None:
        """Forget all trajectories."""
        with self._lock:
            self._trajectories.clear()

    def _metrics(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        """Return the mean of each score, also of each `data_source`, and `num_samples`."""
        found: dict[str, list[float]] = defaultdict(list)
        for each in trajectories:
            source = each.get("data_source")
            for name, value in scores_of(each).items():
                found[name].append(value)
                if source is not None:
                    found[f"{source}/{name}"].append(value)
        means = {name: sum(values) / len(values) for name, values in sorted(found.items())}
        return {**means, "num_samples": float(len(trajectories))}


def backends_of(config: Any) -> list[str]:
    """Return the names of the run's loggers: `logger.backend`, one or a list."""
    named = setting(config, "logger.backend", [])
    return [named] if isinstance(named, str) else list(named)
