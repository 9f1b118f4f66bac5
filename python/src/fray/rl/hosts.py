"""Classes of Python in the place of roles in Go: the actor that each of them is.

An actor speaks the protocol of its role, with headers and payloads, and calls the object with the guide's
types. It sees to it that a trajectory of a task, or a batch of an id, reaches the object once, and that what
was taken and not acknowledged comes again. Methods that only the object has are the actor's, too.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, cast

from fray.rl.config import setting
from fray.rl.data import BaseDataLoader
from fray.rl.handed import Once, Taken
from fray.rl.leases import LeasedLoader
from fray.rl.nexrl_types import DEFAULT_MODEL, Batch, ModelTag, NexRLRole
from fray.rl.wire import header_of, pack, pack_batch, tag_of, unpack, unpack_batch

_POLL = 0.02  # seconds between two questions of an object that cannot be waited for


class _Host:
    """The actor of an object, whose methods run one at a time."""

    def __init__(self, value: Any, config: Any = None) -> None:
        self._object, self._config = value, config
        self._lock = threading.RLock()

    def health_check(self) -> bool:
        """Return whether the object is well."""
        check = getattr(self._object, "health_check", None)
        return True if check is None else bool(check())


class TrajectoryPoolHost(_Host):
    """A trajectory pool."""

    def __init__(self, value: Any, config: Any = None) -> None:
        super().__init__(value, config)
        self._keys: Sequence[str] = setting(config, "key_list", ())
        self._epoch = 0
        self._seen, self._taken = Once(), Taken[dict[str, Any]]()

    def put_trajectory(self, header: Mapping[str, Any], payload: bytes | None = None) -> str:
        """Store a trajectory: header and payload, or the trajectory itself."""
        task = header.get("task_id") if payload is not None else None
        trajectory = dict(header) if payload is None else unpack(payload)
        with self._lock:
            if payload is not None and int(header.get("epoch") or 0) < self._epoch:
                return "re-rollout"  # it is of before the run went back
            if task and task in self._seen:
                return "success"
            outcome = str(self._object.put_trajectory(trajectory))
            if task and outcome == "success":
                self._seen.add(task)
            return outcome

    def put_trajectories(
        self, headers: Sequence[Mapping[str, Any]], payloads: Sequence[bytes]
    ) -> list[dict[str, str]]:
        """Store trajectories; return the outcome of each, or the error."""
        answers: list[dict[str, str]] = []
        for header, payload in zip(headers, payloads, strict=True):
            try:
                answers.append({"outcome": self.put_trajectory(header, payload)})
            except Exception as err:
                answers.append({"error": f"{type(err).__name__}: {err}"})
        return answers

    def get_batch(
        self,
        batch_size: int | None = None,
        model_tag: ModelTag | None = None,
        consumer: str = "",
        wait: float = 0.0,
    ) -> dict[str, Any] | None:
        """Return a batch that stays the pool's until `ack`; at once, as the object cannot be waited for."""
        del wait
        return self._give(model_tag, consumer, lambda: self._object.get_batch(batch_size, model_tag))

    def get_batch_any(self, batch_size: int | None = None, consumer: str = "") -> dict[str, Any] | None:
        """Return a batch of any model that stays the pool's until `ack`."""
        return self._give(None, consumer, lambda: self._object.get_batch_any(batch_size))

    def ack(self, batch_id: str) -> None:
        """Forget a batch."""
        with self._lock:
            self._taken.ack(batch_id)

    def release_consumer(self, consumer: str) -> None:
        """Let batches come again that a consumer took."""
        with self._lock:
            self._taken.release(consumer)

    def untrained(self) -> dict[str, list[str]]:
        """Return no tasks: the object does not know them. A run that begins at a checkpoint skips them."""
        return {"waiting": [], "trained": []}

    def is_empty(self, model_tag: ModelTag | None = None) -> bool:
        """Return whether nothing is stored, and all that was taken is acknowledged."""
        with self._lock:
            return not len(self._taken) and bool(self._object.is_empty(model_tag))

    def unlock_for_weight_sync(self, model_tag: ModelTag, floor: int = 0) -> None:
        """Let trajectories of a model be stored again. The object bounds their staleness by itself."""
        del floor
        with self._lock:
            self._object.unlock_for_weight_sync(model_tag)

    def rewind(self, epoch: int) -> None:
        """Forget everything, as the run goes back to a checkpoint; later trajectories are of this epoch.

        Raises:
            RewindError: the object has no method `clear`, and is not empty.
        """
        with self._lock:
            _clear(self._object, lambda: bool(self._object.is_empty()))
            self._seen, self._taken, self._epoch = Once(), Taken(), epoch

    def _give(
        self, tag: ModelTag | None, consumer: str, get: Callable[[], Batch | None]
    ) -> dict[str, Any] | None:
        with self._lock:
            found = self._taken.next(tag, consumer)
            if found is None:
                batch = get()
                if batch is None:
                    return None
                found = self._taken.new_id(), tag_of(batch), self._written(batch)
            known, of, value = found
            self._taken.give(known, of, value, consumer)
            return {"id": known, **value}

    def _written(self, batch: Batch) -> dict[str, Any]:
        trajectories = batch.to_trajectories()
        return {
            "metadata": dict(batch.metadata),
            "payloads": [pack(each) for each in trajectories],
            "headers": [header_of(each, self._keys) for each in trajectories],
        }


class TrainBatchPoolHost(_Host):
    """A pool of batches for training."""

    def __init__(self, value: Any, config: Any = None) -> None:
        super().__init__(value, config)
        self._seen, self._taken = Once(), Taken[dict[str, Any]]()

    def put_batch(self, header: Mapping[str, Any], payload: bytes) -> bool:
        """Queue a batch, once for its id."""
        known = header.get("id")
        with self._lock:
            if known and known in self._seen:
                return True
            batch = unpack_batch(payload)
            batch.metadata.setdefault("update_fn", header.get("update_fn") or "")
            stored = bool(self._object.put_batch(batch, header.get("update_fn") or ""))
            if known and stored:
                self._seen.add(known)
            return stored

    def get_batch(
        self, model: ModelTag | None = "default", consumer: str = "", wait: float = 0.0
    ) -> dict[str, Any] | None:
        """Return the next batch of a model, which stays the pool's until `ack`; at once."""
        del wait
        with self._lock:
            found = self._taken.next(model, consumer)
            if found is None:
                batch = self._object.get_batch(model)
                if batch is None:
                    return None
                header = {
                    "model_tag": tag_of(batch),
                    "batch_size": len(batch),
                    "update_fn": batch.metadata.get("update_fn", ""),
                }
                value = {"header": header, "payload": pack_batch(batch)}
                found = self._taken.new_id(), tag_of(batch), value
            known, tag, value = found
            self._taken.give(known, tag, value, consumer)
            return {"id": known, **value}

    def ack(self, batch_id: str) -> None:
        """Forget a batch."""
        with self._lock:
            self._taken.ack(batch_id)

    def release_consumer(self, consumer: str) -> None:
        """Let batches come again that a consumer took."""
        with self._lock:
            self._taken.release(consumer)

    def untrained(self) -> dict[str, list[str]]:
        """Return no tasks: the object does not know them. A run that begins at a checkpoint skips them."""
        return {"waiting": [], "trained": []}

    def is_empty(self) -> bool:
        """Return whether no model has a batch, and all that were taken are acknowledged."""
        with self._lock:
            return not len(self._taken) and bool(self._object.is_empty())

    def rewind(self, epoch: int) -> None:
        """Forget everything, as the run goes back to a checkpoint. Raises as TrajectoryPoolHost.rewind."""
        del epoch
        with self._lock:
            _clear(self._object, lambda: bool(self._object.is_empty()))
            self._seen, self._taken = Once(), Taken()


class ValidatorHost(_Host):
    """A validator."""

    def __init__(self, value: Any, config: Any = None) -> None:
        super().__init__(value, config)
        self._seen = Once()
        self._last: tuple[str, dict[str, float]] | None = None

    def put_trajectory(self, header: Mapping[str, Any], payload: bytes | None = None) -> str:
        """Keep a trajectory: header and payload, or the trajectory itself."""
        task = header.get("task_id") if payload is not None else None
        trajectory = dict(header) if payload is None else unpack(payload)
        with self._lock:
            if not task or task not in self._seen:
                self._object.put_trajectory(trajectory)
                if task:
                    self._seen.add(task)
        return "success"

    def compute_and_log_metrics(self, validation: str = "") -> dict[str, float]:
        """Return the metrics of the validation, which is over then; by its name the same ones again."""
        with self._lock:
            if validation and self._last is not None and self._last[0] == validation:
                return dict(self._last[1])
            metrics = dict(self._object.compute_and_log_metrics())
            self._seen, self._last = Once(), (validation, metrics)
            return metrics

    def clear(self) -> None:
        """Forget all trajectories and metrics: another validation begins."""
        with self._lock:
            self._object.clear()
            self._seen, self._last = Once(), None


class WeightSyncControllerHost(_Host):
    """A controller of weights, whose batches and updates count once, by their IDs."""

    def __init__(self, value: Any, config: Any = None) -> None:
        super().__init__(value, config)
        self._known = Once()
        self._running: dict[tuple[str, ...], threading.Lock] = {}

    def trajectory_pool_notify_batch_ready(
        self, model_tag: ModelTag, batch_id: str = "", oldest: int | None = None
    ) -> None:
        """Note that a pool is about to give a batch. The object bounds its staleness by itself."""
        del oldest
        self._once(("batch", batch_id), self._object.trajectory_pool_notify_batch_ready, model_tag)

    def train_worker_notify_weight_update(
        self, worker_name: str, model_tag: ModelTag, update_id: str = ""
    ) -> None:
        """Note that a worker trained a model."""
        known = ("update", worker_name, model_tag, update_id) if update_id else ("update", "")
        self._once(known, self._object.train_worker_notify_weight_update, worker_name, model_tag)

    def end_validate(self, model_tag: ModelTag, validation: str = "") -> None:
        """Note that a validation has ended; once, if it has a name."""
        self._once(("validation", validation), self._object.end_validate, model_tag)

    def set_model_version(self, model_tag: ModelTag, version: int) -> None:
        """Begin at the version of a checkpoint, where the object has the method."""
        with self._lock:
            self._known = Once()
        if (own := getattr(self._object, "set_model_version", None)) is not None:
            own(model_tag, version)

    def abandon(self, model_tag: ModelTag) -> None:
        """Let what waits for a batch go on, of which none is left, where the object has the method."""
        if (own := getattr(self._object, "abandon", None)) is not None:
            own(model_tag)

    def status(self) -> dict[str, Any]:
        """Return which models wait for a validation, and whether no weights are being copied."""
        if (own := getattr(self._object, "status", None)) is not None:
            return dict(own())
        waiting = bool(self._object.is_waiting_for_validation())
        blocked = self._object.check_rollout_service_status(DEFAULT_MODEL) != "continue"
        tags = [DEFAULT_MODEL] if waiting else []
        return {"models": {}, "waiting": tags, "settled": not waiting and not blocked}

    def _once(self, known: tuple[str, ...], call: Callable[..., Any], *args: Any) -> None:
        """Make a call that may wait for the copy of weights, once for its ID: one made again waits, too."""
        if not known[-1]:
            call(*args)
            return
        with self._lock:
            running = self._running.setdefault(known, threading.Lock())
        with running:
            if known in self._known:
                return
            call(*args)
            with self._lock:
                self._known.add(known)
                self._running.pop(known, None)

    def rollout_service(self, model_tag: ModelTag, timeout_s: float) -> dict[str, Any]:
        """Return whether rollouts of a model may go on, as soon as they may, and its weights' version."""
        status = self._object.check_rollout_service_status(model_tag)
        if status != "continue":
            status = self.wait_rollout_service(model_tag, timeout_s)
        return {"status": str(status), "version": int(self._object.get_rollout_model_version(model_tag))}

    def wait_rollout_service(self, model_tag: ModelTag, timeout_s: float) -> str:
        """Return "continue" as soon as rollouts of a model may go on, "block" after so many seconds."""
        own = getattr(self._object, "wait_rollout_service", None)
        if own is not None:
            return str(own(model_tag, timeout_s))
        until = time.monotonic() + timeout_s
        while True:
            status = str(self._object.check_rollout_service_status(model_tag))
            if status == "continue" or time.monotonic() >= until:
                return status
            time.sleep(_POLL)


class AlgorithmProcessorHost(_Host):
    """An algorithm processor that has no state to go back to, as one that is no BaseAlgorithmProcessor."""

    def load_checkpoint(self, path: str) -> None:
        """Do nothing: it makes each batch of the trajectories alone."""


class RewindError(RuntimeError):
    """An object cannot forget what it has, so that the run cannot go back to a checkpoint."""


def _clear(value: Any, is_empty: Callable[[], bool]) -> None:
    if (clear := getattr(value, "clear", None)) is not None:
        clear()
    elif not is_empty():
        raise RewindError(
            f"{type(value).__name__} has no method clear, and is not empty: the run cannot go back to a "
            "checkpoint; add the method"
        )


def actor_of(role: NexRLRole, value: Any, config: Any = None, ttl: float | None = None) -> Any:
    """Return the actor of an object that has a role, which is the object itself where it has all methods.

    Args:
        role: Its role.
        value: The object.
        config: The section that it was made with.
        ttl: Of a data loader: seconds after which leases end that are not renewed.
    """
    if role in (NexRLRole.DATA_LOADER, NexRLRole.VALIDATE_DATALOADER) and isinstance(value, BaseDataLoader):
        route: Any = "validate" if role is NexRLRole.VALIDATE_DATALOADER else "train"
        seconds = float(setting(config, "lease_ttl", 30.0)) if ttl is None else ttl
        return _with_methods_of(value, LeasedLoader(value, route, seconds))
    kind = _kind_of(role, type(value))
    return value if kind is None else _with_methods_of(value, kind(value, config))


def _kind_of(role: NexRLRole, kind: type) -> type[_Host] | None:
    """Return what stands before an object of a class, None if that is the actor itself."""
    whole = role is NexRLRole.ALGORITHM_PROCESSOR and hasattr(kind, "load_checkpoint")
    return None if whole else _KINDS.get(role)


_KINDS: dict[NexRLRole, type[_Host]] = {
    NexRLRole.TRAJECTORY_POOL: TrajectoryPoolHost,
    NexRLRole.TRAIN_BATCH_POOL: TrainBatchPoolHost,
    NexRLRole.VALIDATOR: ValidatorHost,
    NexRLRole.WEIGHT_SYNC_CONTROLLER: WeightSyncControllerHost,
    NexRLRole.ALGORITHM_PROCESSOR: AlgorithmProcessorHost,
}


def host_of(role: NexRLRole, kind: type) -> type:
    """Return the class of the actor of a role, without the methods of `kind`, the class of its object."""
    if role in (NexRLRole.DATA_LOADER, NexRLRole.VALIDATE_DATALOADER) and issubclass(kind, BaseDataLoader):
        return LeasedLoader
    return _kind_of(role, kind) or kind


def _with_methods_of(value: Any, host: Any) -> Any:
    """Give an actor the public methods of an object that its class lacks."""
    host.__class__ = _extended(cast("Hashable", type(host)), cast("Hashable", type(value)))
    vars(host)["_object"] = value
    return host


@functools.cache
def _extended(host: Any, kind: Any) -> type:
    methods = {
        name: _forwarder(name, function)
        for name, function in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and not hasattr(host, name)
    }
    return type(kind.__name__, (host,), methods)


def _forwarder(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._object, name)(*args, **kwargs)

    return forward
