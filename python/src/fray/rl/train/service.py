"""The base of train services: which batches were trained on, and the state of a model as files.

A service is an actor, `train_service_0`; of a gang its first task hosts it. A subclass has the model:

    class MyService(TrainService):
        def build(self, config): ...             # the model, from the section service.train_service
        def update(self, batch): ...             # one update; returns metrics
        def state(self): ...                     # arrays: all that the next update depends on
        def restore(self, state): ...
        def weights(self): ...                   # arrays that the inference services load
"""

from __future__ import annotations

import io
import json
import threading
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from fray.rl.nexrl_types import Batch
from fray.rl.train.checkpoints import CheckpointError, write_file
from fray.rl.wire import unpack_batch
from fray.rpc import method

STATE = "state.npz"
WEIGHTS = "weights.npz"
SERVICE = "service.json"
VERSION = "version"
"""The array in a file of weights that has their number of updates."""

REMEMBERED = 4096
"""Batches whose ids are remembered, so that one which comes again is not trained on twice."""


class TrainOutcome(StrEnum):
    """What became of a batch."""

    TRAINED = "trained"
    REPEATED = "repeated"
    """It was trained on before; the metrics are those of that time."""
    UNINITIALIZED = "uninitialized"
    """The service was started again: `initialize` it, and load a checkpoint."""
    OTHER_STEP = "other_step"
    """The model has another number of updates than the caller expects: load a checkpoint."""


class TrainService(ABC):
    """Trains one model, batch after batch."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._config: dict[str, Any] | None = None
        self._step = 0
        self._trained: dict[str, dict[str, Any]] = {}  # by id, the oldest first

    @abstractmethod
    def build(self, config: Mapping[str, Any]) -> None:
        """Make the model as it is before the first update. The same configuration makes the same model."""

    @abstractmethod
    def update(self, batch: Batch) -> dict[str, float]:
        """Make one update of the model, and return metrics of it."""

    @abstractmethod
    def state(self) -> Mapping[str, Any]:
        """Return the arrays that later updates depend on: weights, the optimizer's, counts."""

    @abstractmethod
    def restore(self, state: Mapping[str, Any]) -> None:
        """Put the model into a state."""

    @abstractmethod
    def weights(self) -> Mapping[str, Any]:
        """Return the arrays that inference needs."""

    @method(idempotent=True)
    def initialize(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Build the model, unless that was done with this configuration. Returns {"step": updates so far}."""
        with self._lock:
            if self._config != dict(config):
                self._config = None
                self.build(config)
                self._config, self._step, self._trained = dict(config), 0, {}
            return {"step": self._step}

    @method(idempotent=True)
    def train_batch(self, payload: bytes, batch_id: str = "", step: int | None = None) -> dict[str, Any]:
        """Make the update of one batch, once.

        Args:
            payload: a batch as `fray.rl.wire.pack_batch` packs it.
            batch_id: a batch of this id that was trained on is not trained on again; "": any other.
            step: how many updates the caller takes the model to have; None: any.

        Returns:
            {"outcome": a TrainOutcome, "step": updates after it, "metrics": numbers by name}.
        """
        with self._lock:
            if self._config is None:
                return self._answer(TrainOutcome.UNINITIALIZED, {})
            if batch_id and (known := self._trained.get(batch_id)) is not None:
                return {**known, "outcome": TrainOutcome.REPEATED.value}
            if step is not None and step != self._step:
                return self._answer(TrainOutcome.OTHER_STEP, {})
            metrics = {str(name): float(value) for name, value in self.update(unpack_batch(payload)).items()}
            self._step += 1
            answer = self._answer(TrainOutcome.TRAINED, metrics)
            if batch_id:
                self._trained[batch_id] = answer
                while len(self._trained) > REMEMBERED:
                    del self._trained[next(iter(self._trained))]
            return answer

    def _answer(self, outcome: TrainOutcome, metrics: dict[str, float]) -> dict[str, Any]:
        return {"outcome": outcome.value, "step": self._step, "metrics": metrics}

    @method(idempotent=True)
    def get_step(self) -> int:
        """Return the number of updates; -1 before `initialize`."""
        with self._lock:
            return -1 if self._config is None else self._step

    @method(idempotent=True)
    def health_check(self) -> bool:
        """Return that it answers."""
        return True

    @method(idempotent=True)
    def save_checkpoint(self, path: str) -> int:
        """Write the state to a directory that need not exist, and return its number of updates."""
        with self._lock:
            self._initialized()
            root = Path(path)
            root.mkdir(parents=True, exist_ok=True)
            write_file(root / STATE, pack_arrays(self.state()))
            write_file(root / WEIGHTS, pack_arrays({**self.weights(), VERSION: self._step}))
            known = {"step": self._step, "trained": list(self._trained.items())}
            write_file(root / SERVICE, json.dumps(known).encode())
            return self._step

    @method(idempotent=True)
    def load_checkpoint(self, path: str) -> int:
        """Go back to the state of a directory; "": before the first update. Returns its number of updates.

        Raises:
            FileNotFoundError: there is no checkpoint.
        """
        with self._lock:
            config = self._initialized()
            if not path:
                self.build(config)
                self._step, self._trained = 0, {}
                return 0
            root = Path(path)
            known = json.loads((root / SERVICE).read_text())
            self.restore(read_arrays(root / STATE))
            self._step, self._trained = int(known["step"]), dict(known["trained"])
            return self._step

    @method(idempotent=True)
    def save_weights(self, path: str) -> int:
        """Write the weights for inference to PATH/weights.npz, whole or not at all. Returns their version."""
        with self._lock:
            self._initialized()
            write_file(Path(path) / WEIGHTS, pack_arrays({**self.weights(), VERSION: self._step}))
            return self._step

    def _initialized(self) -> dict[str, Any]:
        if self._config is None:
            raise RuntimeError("the train service has no model yet; call initialize")
        return self._config


def pack_arrays(arrays: Mapping[str, Any]) -> bytes:
    """Return arrays as the content of a .npz file."""
    import numpy as np

    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def read_arrays(path: str | Path) -> dict[str, Any]:
    """Return the arrays of a .npz file.

    Raises:
        CheckpointError: it cannot be read.
    """
    import numpy as np

    try:
        # numpy leaves a torn file open that it opens itself.
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as loaded:
            return {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as err:
        raise CheckpointError(f"{path} cannot be read: {err}") from err
