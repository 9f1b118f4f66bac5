"""The data types of a run: what rollouts give, what training takes, and the roles between them.

Nothing here knows of actors. Padding is found with numpy, which is imported when it is first needed; tensors
of torch and arrays of numpy are both taken.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

ModelTag = str
"""Names a model of a run."""

Trajectory = dict[str, Any]
"""One rollout: `prompt`, `response`, `finish_reason`, `model_tag` and what else an algorithm needs."""

DEFAULT_MODEL: ModelTag = "default"
"""The tag of trajectories and batches that have none."""

NO_LIMIT = -1
"""As `max_strip_threshold`: however much padding there is."""


class NexRLRole(Enum):
    """What a process of a run does. The value begins the names of its actors."""

    ROLLOUT_WORKER = "rollout_worker"
    TRAIN_WORKER = "train_worker"
    ALGORITHM_PROCESSOR = "algorithm_processor"
    TRAJECTORY_POOL = "trajectory_pool"
    TRAIN_BATCH_POOL = "train_batch_pool"
    WEIGHT_SYNC_CONTROLLER = "weight_sync_controller"
    DATA_LOADER = "data_loader"
    VALIDATE_DATALOADER = "validate_dataloader"
    VALIDATOR = "validator"


@dataclass
class Batch:
    """Samples and what holds for all of them."""

    values: dict[str, Any]
    """By field, one element per sample: lists, arrays of numpy or tensors of torch."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Of the batch. `batch_size` is the number of samples, and required."""

    def __len__(self) -> int:
        """Return the number of samples.

        Raises:
            ValueError: the metadata has no `batch_size`.
        """
        if "batch_size" not in self.metadata:
            raise ValueError(
                "metadata has no batch_size, the number of samples; set it when making the Batch"
            )
        return int(self.metadata["batch_size"])

    def copy(self) -> Batch:
        """Return a deep copy."""
        return copy.deepcopy(self)

    def to_dict(self) -> dict[str, Any]:
        """Return values and metadata as one dictionary; of a key in both the metadata's value."""
        return {**self.values, **self.metadata}

    @classmethod
    def from_trajectories(
        cls, trajectories: Sequence[Trajectory], model_tag: ModelTag | None = None
    ) -> Batch:
        """Return a batch of trajectories, a list of values for each of their fields.

        The metadata has `batch_size`, `model_tag` and `temperature`, the latter two of the first trajectory
        ("default" and 1.0 where it lacks them).

        Raises:
            ValueError: there are none, or one has other fields than the first.
        """
        if not trajectories:
            raise ValueError("a batch has at least one trajectory")
        first = trajectories[0]
        for i, each in enumerate(trajectories):
            if each.keys() != first.keys():
                lacks, more = sorted(first.keys() - each.keys()), sorted(each.keys() - first.keys())
                raise ValueError(
                    f"trajectory {i} has other fields than trajectory 0: it lacks {lacks} and has {more} "
                    "besides; give all trajectories of a model the same fields"
                )
        metadata = {
            "batch_size": len(trajectories),
            "model_tag": model_tag or first.get("model_tag", DEFAULT_MODEL),
            "temperature": first.get("temperature", 1.0),
        }
        return cls({key: [each[key] for each in trajectories] for key in first}, metadata)

    def to_trajectories(self) -> list[Trajectory]:
        """Return the samples one by one."""
        return [{key: value[i] for key, value in self.values.items()} for i in range(len(self))]

    @staticmethod
    def remove_redundant_left_padding(
        data: Batch,
        pad_token_id: int,
        fields: Sequence[str] | None = None,
        anchor_field: str = "input_ids",
        max_strip_threshold: int = NO_LIMIT,
    ) -> Batch:
        """Return the batch without the first columns that are padding in all of its sequences.

        Args:
            data: The batch, which stays as it is.
            pad_token_id: The token that is padding.
            fields: Which fields lose the columns; None: all of the anchor's width. Fields that are not
                two-dimensional, or of another width, keep theirs.
            anchor_field: The field in which padding is counted, of shape (batch_size, length). If there is
                none, or it is not two-dimensional, the batch is returned as it is.
            max_strip_threshold: The most columns to remove; -1: without limit.
        """
        return _stripped(data, pad_token_id, fields, anchor_field, max_strip_threshold, left=True)

    @staticmethod
    def remove_redundant_right_padding(
        data: Batch,
        pad_token_id: int,
        fields: Sequence[str] | None = None,
        anchor_field: str = "input_ids",
        max_strip_threshold: int = NO_LIMIT,
    ) -> Batch:
        """Return the batch without the last columns that are padding in all of its sequences.

        The arguments are those of `remove_redundant_left_padding`.
        """
        return _stripped(data, pad_token_id, fields, anchor_field, max_strip_threshold, left=False)

    def to_nextrainer_batch(self) -> dict[str, Any]:
        """Return the batch as a NexTrainer service takes it.

        `batch` has the tensors: arrays of numbers, and tensors of torch. `non_tensor_batch` has the other
        values, each as an array of objects of the length of the batch, and `meta_info` the metadata.
        """
        tensors, others = {}, {}
        for key, value in self.values.items():
            if _is_tensor(value):
                tensors[key] = value
            else:
                others[key] = _objects(value)
        return {"batch": tensors, "non_tensor_batch": others, "meta_info": dict(self.metadata)}


def _stripped(
    data: Batch, pad: int, fields: Sequence[str] | None, anchor: str, limit: int, *, left: bool
) -> Batch:
    width, padding = _padding(data.values.get(anchor), pad, left)
    count = padding if limit < 0 else min(padding, limit)
    if not count:
        return data
    columns = slice(count, None) if left else slice(None, width - count)

    def strip(key: str, value: Any) -> Any:
        if (fields is not None and key not in fields) or _width(value) != width:
            return value
        if isinstance(value, list):
            return [row[columns] for row in value]
        return value[:, columns]

    return Batch({key: strip(key, value) for key, value in data.values.items()}, dict(data.metadata))


def _padding(anchor: Any, pad: int, left: bool) -> tuple[int, int]:
    """Return the width of an anchor, and how many of its first or last columns are padding only."""
    width = _width(anchor)
    if not width:
        return 0, 0
    import numpy as np

    tokens = np.asarray(anchor.cpu() if hasattr(anchor, "cpu") else anchor)  # a tensor of an accelerator
    columns = (tokens == pad).all(axis=0)
    ordered = columns if left else columns[::-1]
    return width, width if ordered.all() else int(ordered.argmin())


def _width(value: Any) -> int:
    """Return the number of columns of a two-dimensional value with rows; 0 for others."""
    shape: Any = getattr(value, "shape", None)
    if shape is not None:
        return int(shape[1]) if len(shape) == 2 and shape[0] else 0
    if not isinstance(value, list) or not value or not all(isinstance(row, list) for row in value):
        return 0
    widths = {len(row) for row in value}
    flat = not any(isinstance(each, (list, tuple)) for row in value for each in row)
    return widths.pop() if len(widths) == 1 and flat else 0


def _is_tensor(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    return dtype is not None and hasattr(value, "shape") and getattr(dtype, "kind", "f") != "O"


def _objects(values: Any) -> Any:
    import numpy as np

    if not isinstance(values, (list, tuple)):
        return np.asarray(values, dtype=object)
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):  # numpy would take a list of equal lists for a matrix
        array[i] = value
    return array


Formatter = Callable[[Any], str]
"""Writes a value that is dumped as text."""
