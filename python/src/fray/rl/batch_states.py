"""What an algorithm processor carries from one batch to the next, such as an adaptive coefficient.

The state is kept in a file before a batch is acknowledged, with the state before that batch: a processor that
is lost in between gets the batch again, and begins it where it began it then. It also travels with each batch
to training, and into the checkpoint of its update (`algorithm.json`), with which a run is resumed. So each
batch counts once in it, and a resumed run has the state that an uninterrupted one had at that step.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fray.rl.nexrl_types import Batch
from fray.rl.train.checkpoints import CheckpointError, read_json, write_file

STATES = "algorithm.json"
"""The file of a checkpoint that has the states of algorithm processors, by their names."""

_KEY = "algorithm_state"  # of a training batch's metadata

State = Mapping[str, Any]
"""Of a processor: numbers and texts by name, as JSON has them. {} is that of a processor that begins."""


@dataclass(frozen=True)
class _Kept:
    source: str = ""
    """The last batch of trajectories that was processed."""
    before: State = field(default_factory=dict)
    after: State = field(default_factory=dict)


class ReplacedError(RuntimeError):
    """The state was set to that of a checkpoint while a batch was being processed."""


class BatchStates:
    """The states of one processor before and after its last batch."""

    def __init__(self, folder: str | Path, name: str) -> None:
        """Read what a former process has left.

        Args:
            folder: A directory that outlives the process; "": the states are lost with it.
            name: Of the processor.

        Raises:
            CheckpointError: the file cannot be read.
        """
        self._file = Path(folder) / f"{name}.json" if folder else None
        self._lock = threading.Lock()
        self._life = 0
        found = read_json(self._file, None) if self._file is not None else None
        try:
            self._kept = _Kept() if found is None else _Kept(**found)
        except TypeError as err:
            raise CheckpointError(f"{self._file} is no state of an algorithm processor: {err}") from err

    def begin(self, source: str) -> tuple[State, int]:
        """Return the state with which a batch begins, and what `keep` is to be called with.

        Args:
            source: The batch's id. The last one comes again where it was not acknowledged.
        """
        with self._lock:
            again = source and source == self._kept.source
            return (self._kept.before if again else self._kept.after), self._life

    def keep(self, source: str, before: State, after: State, life: int) -> None:
        """Keep the states before and after a batch; the last thing before it is acknowledged.

        Raises:
            ReplacedError: `reset` was called since `begin`.
            OSError: the file cannot be written.
        """
        with self._lock:
            if life != self._life:
                raise ReplacedError(
                    f"the run has gone back to a checkpoint, and batch {source} counts no more"
                )
            self._set(_Kept(source, dict(before), dict(after)))

    def reset(self, state: State) -> None:
        """Begin the next batch with a state, that of a checkpoint."""
        with self._lock:
            self._life += 1
            self._set(_Kept(after=dict(state)))

    def _set(self, kept: _Kept) -> None:
        if self._file is not None and kept != self._kept:
            write_file(self._file, json.dumps(asdict(kept)).encode())
        self._kept = kept


def with_state(batch: Batch, name: str, state: State) -> Batch:
    """Return a training batch that carries the state of its processor, itself if that has none."""
    if not state:
        return batch
    return Batch(batch.values, {**batch.metadata, _KEY: {"name": name, "state": dict(state)}})


def take_state(batch: Batch) -> tuple[Batch, dict[str, State]]:
    """Return a training batch without the state that it carries, and that by the processor's name."""
    carried = batch.metadata.get(_KEY)
    if carried is None:
        return batch, {}
    metadata = {key: value for key, value in batch.metadata.items() if key != _KEY}
    return Batch(batch.values, metadata), {str(carried["name"]): dict(carried["state"])}


def state_in(checkpoint: str | Path, name: str) -> State:
    """Return the state that a checkpoint has of a processor, {} if it has none.

    Raises:
        CheckpointError: there is no such directory on this machine, or its file cannot be read.
    """
    if not Path(checkpoint).is_dir():
        raise CheckpointError(
            f"there is no checkpoint {checkpoint} here, which has the state of {name}; put checkpoint_path "
            "into a directory that all hosts of the run share"
        )
    found = states_in(checkpoint).get(name, {})
    if not isinstance(found, dict):
        raise CheckpointError(f"{Path(checkpoint) / STATES}: the state of {name} is no JSON object")
    return found


def states_in(checkpoint: str | Path) -> dict[str, State]:
    """Return the states that a checkpoint has, by the names of their processors.

    Raises:
        CheckpointError: its file cannot be read.
    """
    found = read_json(Path(checkpoint) / STATES, {})
    if not isinstance(found, dict):
        raise CheckpointError(f"{Path(checkpoint) / STATES} is no JSON object")
    return found
