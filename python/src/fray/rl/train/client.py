"""Clients of train services: an actor, or a mock in this process."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fray.rl.config import ConfigError, class_of, json_like, setting
from fray.rl.nexrl_types import Batch
from fray.rl.train.checkpoints import write_file
from fray.rl.train.service import SERVICE, WEIGHTS, TrainOutcome
from fray.rl.wire import pack_batch


@dataclass(frozen=True)
class Trained:
    """What became of a batch."""

    outcome: TrainOutcome
    step: int
    """Updates of the model after it."""
    metrics: dict[str, float] = field(default_factory=dict)


class TrainServiceClient(ABC):
    """What a train worker asks of a train service, wherever that is."""

    @abstractmethod
    def initialize(self, config: Mapping[str, Any]) -> int:
        """Have the model built, unless it is with this configuration, and return its number of updates."""

    @abstractmethod
    def train_batch(self, batch: Batch, batch_id: str = "", step: int | None = None) -> Trained:
        """Make the update of one batch, once for each id, see `TrainService.train_batch`."""

    @abstractmethod
    def save_checkpoint(self, path: str) -> int:
        """Have the state written to a directory, and return its number of updates."""

    @abstractmethod
    def load_checkpoint(self, path: str) -> int:
        """Go back to the state of a directory ("": before the first update). Returns its updates."""

    @abstractmethod
    def save_weights(self, path: str) -> int:
        """Have the weights for inference written to a directory, and return their version."""

    @abstractmethod
    def get_step(self) -> int:
        """Return the number of updates; -1 if there is no model."""


class ActorTrainServiceClient(TrainServiceClient):
    """A client of the actor `train_service_0`. A call that may have run is made again: it runs once."""

    def __init__(self, actor: Any) -> None:
        """Use a handle of the actor."""
        self._actor = actor.options(idempotent=True)

    def initialize(self, config: Mapping[str, Any]) -> int:
        """Have the model built."""
        return int(self._actor.initialize(json_like(config))["step"])

    def train_batch(self, batch: Batch, batch_id: str = "", step: int | None = None) -> Trained:
        """Make the update of one batch. Without an id it is not made again if it may have been made."""
        actor = self._actor if batch_id else self._actor.options(idempotent=False)
        answer = actor.train_batch(pack_batch(batch), batch_id, step)
        return Trained(TrainOutcome(answer["outcome"]), int(answer["step"]), dict(answer["metrics"]))

    def save_checkpoint(self, path: str) -> int:
        """Have the state written."""
        return int(self._actor.save_checkpoint(path))

    def load_checkpoint(self, path: str) -> int:
        """Go back to a state."""
        return int(self._actor.load_checkpoint(path))

    def save_weights(self, path: str) -> int:
        """Have the weights written."""
        return int(self._actor.save_weights(path))

    def get_step(self) -> int:
        """Return the number of updates."""
        return int(self._actor.get_step())


class MockTrainServiceClient(TrainServiceClient):
    """A model of one number, the count of its updates, in this process: to try a run without a service."""

    def __init__(self) -> None:
        self._step, self._initialized = 0, False
        self._trained: dict[str, Trained] = {}
        self._lock = threading.Lock()

    def initialize(self, config: Mapping[str, Any]) -> int:  # noqa: ARG002 - it has no settings
        """Note that there is a model."""
        with self._lock:
            self._initialized = True
            return self._step

    def train_batch(self, batch: Batch, batch_id: str = "", step: int | None = None) -> Trained:
        """Count."""
        with self._lock:
            if batch_id and (known := self._trained.get(batch_id)) is not None:
                return Trained(TrainOutcome.REPEATED, known.step, known.metrics)
            if step is not None and step != self._step:
                return Trained(TrainOutcome.OTHER_STEP, self._step)
            self._step += 1
            trained = Trained(
                TrainOutcome.TRAINED, self._step, {"loss": 1 / self._step, "samples": float(len(batch))}
            )
            if batch_id:
                self._trained[batch_id] = trained
            return trained

    def save_checkpoint(self, path: str) -> int:
        """Write the count."""
        with self._lock:
            known = {"step": self._step, "trained": {name: each.step for name, each in self._trained.items()}}
            write_file(Path(path) / SERVICE, json.dumps(known).encode())
            return self._step

    def load_checkpoint(self, path: str) -> int:
        """Read a count."""
        with self._lock:
            known: dict[str, Any] = {"step": 0, "trained": {}}
            if path:
                known = json.loads((Path(path) / SERVICE).read_text())
            self._step = int(known["step"])
            self._trained = {name: Trained(TrainOutcome.TRAINED, at) for name, at in known["trained"].items()}
            return self._step

    def save_weights(self, path: str) -> int:
        """Write an empty file of weights."""
        with self._lock:
            write_file(Path(path) / WEIGHTS, b"")
            return self._step

    def get_step(self) -> int:
        """Return the count."""
        with self._lock:
            return self._step if self._initialized else -1


def create_train_service_client(config: Any, actor: Any = None) -> TrainServiceClient:
    """Return the client that a section service.train_service asks for.

    Args:
        config: with `backend`: "mock", "actor", or "module:Class" for a class that is made with the section.
        actor: the handle of the train service, for "actor".

    Raises:
        ConfigError: it is another backend, or there is no actor.
    """
    backend = setting(config, "backend", "actor")
    if backend == "mock":
        return MockTrainServiceClient()
    if backend == "actor":
        if actor is None:
            raise ConfigError(
                'service.train_service.backend is "actor", and there is no actor train_service_0'
            )
        return ActorTrainServiceClient(actor)
    if backend == "nextrainer":
        raise ConfigError(
            "service.train_service.backend: fray has no client of NexTrainer; host its trainer as "
            'service.train_service.class with backend "actor", or name your client as "module:Class" '
            "of a TrainServiceClient"
        )
    if ":" in str(backend):
        client: TrainServiceClient = class_of(backend, "service.train_service.backend")(config)
        return client
    raise ConfigError(
        'service.train_service.backend: want "mock", "actor" or "module:Class" of a TrainServiceClient, '
        f'got "{backend}"'
    )
