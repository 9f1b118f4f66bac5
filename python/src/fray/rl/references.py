"""The stateful roles of a run as modules see them: the guide's methods, over the actors that the roles are.

A reference may be of a role in Go or of a class of Python that is hosted in its place. All its calls are safe
to repeat: trajectories go by the id of their task, batches by their own, so a call that may have run in an
actor that was lost is made again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, cast

from fray.rl.combined import LongPoll
from fray.rl.execution import is_actor
from fray.rl.nexrl_types import Batch, ModelTag, Trajectory
from fray.rl.wire import (
    Exchange,
    Origin,
    Outcome,
    PayloadError,
    PoolBatch,
    Task,
    TaskOutcome,
    header_of,
    pack,
    pack_batch,
    pool_batch_of,
    shard_of,
    tag_of,
    unpack_batch,
)
from fray.rpc.errors import (
    ActorError,
    MaybeExecutedError,
    StaleError,
    StoppingError,
    UnavailableError,
    UnknownActorError,
)

UNREACHABLE: tuple[type[ActorError], ...] = (
    MaybeExecutedError,
    StaleError,
    StoppingError,
    UnavailableError,
    UnknownActorError,
)
"""Errors of calls that are made again once the actor is back."""

RESOLVE_TIMEOUT = 10.0
"""Seconds that a call waits for its actor; modules then check whether they are to stop, and call again."""

NO_CONSUMER = ""

_OF_VALIDATION = ("task_id", "lease", "data_source", "scores")  # which a validator reads of a header


class Reference:
    """An actor that has a role. Methods that a subclass does not have are the actor's."""

    def __init__(self, actor: Any) -> None:
        """Use an actor's handle, or a wrapper of one."""
        self._actor = actor
        self._again = actor.options(idempotent=True, resolve_timeout=RESOLVE_TIMEOUT)

    @property
    def actor(self) -> Any:
        """The handle."""
        return self._actor

    def __getattr__(self, name: str) -> Any:
        """Return a method of the actor."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._actor, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._actor!r}>"


class RemoteDataLoader(Reference):
    """A data loader, whose items are leased."""

    def lease(self, worker: str, incarnation: str) -> Task | None:
        """Lease the next item to one life of a worker, which has one lease at a time; None: there is none."""
        return Task.of(self._again.get_next_item(worker, incarnation))

    def exchange(
        self,
        worker: str,
        incarnation: str,
        asked: Exchange,
        poll: LongPoll | None = None,
        since: int | None = None,
    ) -> list[Task]:
        """End leases with their tasks, and lease further ones to one life of a worker.

        Args:
            worker: The worker.
            incarnation: Its life.
            asked: What it asks for.
            poll: Makes the call where it may wait, so that it can be interrupted; see LongPoll.
            since: See LongPoll.call.
        """
        method, given = self._again.exchange_leases, asked.to_wire()
        if asked.wait and poll is not None:
            answer = poll.call(method, worker, incarnation, given, since=since)
        else:
            answer = method(worker, incarnation, given)
        return [task for each in answer or () if (task := Task.of(each)) is not None]

    def complete(self, lease_id: str, outcome: TaskOutcome) -> None:
        """End a lease with its task."""
        self._again.complete(lease_id, outcome)

    def put_back(self, lease_id: str) -> bool:
        """End a lease and let its task come next."""
        return bool(self._again.put_back(lease_id))

    def renew(self, worker: str, incarnation: str) -> None:
        """Keep the leases of one life of a worker."""
        self._again.renew(worker, incarnation)

    def release_worker(self, worker: str, incarnation: str) -> None:
        """End the leases of one life of a worker; its tasks come next."""
        self._again.release_worker(worker, incarnation)

    def add_item(self, item: dict[str, Any], item_id: str = "") -> None:
        """Add an item, which comes last. One of the same id is not added again; "": a new id."""
        self._again.add_item(item, item_id or uuid.uuid4().hex)

    def add_item_front(self, item: dict[str, Any], item_id: str = "") -> None:
        """Add an item, which comes next. One of the same id is not added again; "": a new id."""
        self._again.add_item_front(item, item_id or uuid.uuid4().hex)

    def add_item_back(self, item: dict[str, Any], item_id: str = "") -> None:
        """Add an item, which comes last. One of the same id is not added again; "": a new id."""
        self._again.add_item_back(item, item_id or uuid.uuid4().hex)

    def __len__(self) -> int:
        """Return how many items remain."""
        return int(self._again.size())

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return the item of an index."""
        return dict(self._again.get_item(index))


class TrajectoryPool:
    """The trajectory pool, or all of several: those of one group meet in the same one."""

    def __init__(self, actors: Any, key_list: Sequence[str] = ()) -> None:
        """Use the pool's actors.

        Args:
            actors: A handle, or a sequence of those of all pools, in order.
            key_list: The keys that trajectories are grouped by.
        """
        handles = [actors] if is_actor(actors) else list(actors)
        self._shards = [Reference(actor) for actor in handles]
        self.key_list = tuple(key_list)
        self._turn = 0

    def put_trajectory(self, trajectory: Trajectory, origin: Origin | None = None) -> Outcome:
        """Store a trajectory: "success", "fail", or "re-rollout" while its model's weights change.

        Args:
            trajectory: Its fields. Without `model_tag` it is of model "default".
            origin: Of which task it is. A trajectory of a task that is stored already is not stored again.

        Raises:
            PayloadError: a field cannot be packed, or a group key is no str or int.
        """
        header, payload = header_of(trajectory, self.key_list, origin), pack(trajectory)
        keys = list(header["keys"].values()) or [header.get("task_id", "")]
        shard = self._shards[shard_of(keys, len(self._shards))]
        # Without a task the pool cannot recognize it: then it is not put twice.
        target = shard._again if header.get("task_id") else shard.actor
        return cast("Outcome", target.put_trajectory(header, payload))

    def put_trajectories(self, puts: Sequence[tuple[Trajectory, Origin]]) -> list[Outcome | Exception]:
        """Store trajectories of tasks by one call of each pool.

        Returns what became of each: its outcome, or why there is none.
        """
        answers: list[Outcome | Exception] = [PayloadError("it was not put")] * len(puts)
        shards: dict[int, list[tuple[int, dict[str, Any], bytes]]] = {}
        for place, (trajectory, origin) in enumerate(puts):
            try:
                header, payload = header_of(trajectory, self.key_list, origin), pack(trajectory)
            except PayloadError as err:
                answers[place] = err
                continue
            keys = list(header["keys"].values()) or [header.get("task_id", "")]
            shards.setdefault(shard_of(keys, len(self._shards)), []).append((place, header, payload))
        for index, group in shards.items():
            for (place, _, _), answer in zip(group, _put_all(self._shards[index]._again, group), strict=True):
                answers[place] = answer
        return answers

    def take(
        self,
        batch_size: int | None = None,
        model_tag: ModelTag | None = None,
        consumer: str = NO_CONSUMER,
        wait: float = 0.0,
        poll: LongPoll | None = None,
    ) -> PoolBatch | None:
        """Return a batch that stays the pool's until `ack`, None if none is ready.

        Args:
            batch_size: How many trajectories; None: as the pool is configured.
            model_tag: Of which model; None: of any.
            consumer: Who takes it: after `release_consumer` it comes again, with the same id.
            wait: For how many seconds to wait for a batch; of several pools none waits.
            poll: Makes the call, so that it can be interrupted.
        """
        if wait and poll is not None and len(self._shards) == 1:
            method = self._shards[0]._again.get_batch
            return pool_batch_of(poll.call(method, batch_size, model_tag, consumer, wait))
        for index, shard in self._in_turn():
            found = pool_batch_of(shard._again.get_batch(batch_size, model_tag, consumer))
            if found is not None:
                self._turn = (index + 1) % len(self._shards)
                found.id = self._global(index, found.id)
                return found
        return None

    def ack(self, batch_id: str) -> None:
        """Note that what came of a batch is safe elsewhere."""
        index, known = self._local(batch_id)
        self._shards[index]._again.ack(known)

    def release_consumer(self, consumer: str) -> None:
        """Let the batches come again that a consumer took and did not acknowledge."""
        for shard in self._shards:
            shard._again.release_consumer(consumer)

    def get_batch(self, batch_size: int | None = None, model_tag: ModelTag | None = None) -> Batch | None:
        """Return a batch, which is the caller's at once; None if none is ready."""
        found = self.take(batch_size, model_tag)
        if found is None:
            return None
        self.ack(found.id)
        return found.batch

    def get_batch_any(self, batch_size: int | None = None) -> Batch | None:
        """Return a batch of any model, which is the caller's at once; None if none is ready."""
        for index, shard in self._in_turn():
            found = pool_batch_of(shard._again.get_batch_any(batch_size, NO_CONSUMER))
            if found is not None:
                self.ack(self._global(index, found.id))
                return found.batch
        return None

    def is_empty(self, model_tag: ModelTag | None = None) -> bool:
        """Return whether nothing is stored of a model; None: of any."""
        return all(shard._again.is_empty(model_tag) for shard in self._shards)

    def get_model_tags(self) -> list[ModelTag]:
        """Return the models of which something was stored."""
        return sorted({tag for shard in self._shards for tag in shard._again.get_model_tags()})

    def notify_weight_sync_starting(self, model_tag: ModelTag) -> None:
        """Let trajectories of a model be answered with "re-rollout"."""
        for shard in self._shards:
            shard._again.notify_weight_sync_starting(model_tag)

    def unlock_for_weight_sync(self, model_tag: ModelTag) -> None:
        """Let trajectories of a model be stored again."""
        for shard in self._shards:
            shard._again.unlock_for_weight_sync(model_tag)

    def _in_turn(self) -> Iterator[tuple[int, Reference]]:
        for i in range(len(self._shards)):
            index = (self._turn + i) % len(self._shards)
            yield index, self._shards[index]

    def _global(self, index: int, batch_id: str) -> str:
        return batch_id if len(self._shards) == 1 else f"{index}:{batch_id}"

    def _local(self, batch_id: str) -> tuple[int, str]:
        if len(self._shards) == 1:
            return 0, batch_id
        index, _, known = batch_id.partition(":")
        return int(index), known


class TrainBatchPool(Reference):
    """The pool of batches that are ready for training, a queue for each model."""

    def put_batch(
        self, batch: Batch, update_fn: str, batch_id: str = "", source: str = "", tasks: Sequence[str] = ()
    ) -> bool:
        """Queue a batch for its model.

        Args:
            batch: Its metadata has `batch_size`, and `model_tag` unless it is of model "default".
            update_fn: What training is to do with it.
            batch_id: A batch of an id that was put before is not queued again; "": a new id.
            source: The batch of trajectories that it was made of.
            tasks: The ids of the tasks of these trajectories.
        """
        batch_id = batch_id or uuid.uuid4().hex
        header = {
            "id": batch_id,
            "model_tag": tag_of(batch),
            "batch_size": len(batch),
            "update_fn": update_fn,
            "source": source,
            "tasks": list(tasks),
        }
        return bool(self._again.put_batch(header, pack_batch(batch)))

    def take(
        self,
        model: ModelTag | None = "default",
        consumer: str = NO_CONSUMER,
        wait: float = 0.0,
        poll: LongPoll | None = None,
    ) -> tuple[str, Batch, str] | None:
        """Return id, batch and update function of the next batch of a model, None if there is none.

        It stays the pool's until `ack`, and comes again after `release_consumer`.

        Args:
            model: The model's tag.
            consumer: Who takes it.
            wait: For how many seconds to wait for a batch.
            poll: Makes the call, so that it can be interrupted.
        """
        if wait and poll is not None:
            answer = poll.call(self._again.get_batch, model, consumer, wait)
        else:
            answer = self._again.get_batch(model, consumer)
        if answer is None:
            return None
        return (
            str(answer["id"]),
            unpack_batch(answer["payload"]),
            str(answer["header"].get("update_fn") or ""),
        )

    def ack(self, batch_id: str) -> None:
        """Note that a batch was trained on."""
        self._again.ack(batch_id)

    def release_consumer(self, consumer: str) -> None:
        """Let the batches come again that a consumer took and did not acknowledge."""
        self._again.release_consumer(consumer)

    def get_batch(self, model: ModelTag | None = "default") -> Batch | None:
        """Return the next batch of a model, which is the caller's at once; None if there is none."""
        found = self.take(model)
        if found is None:
            return None
        self.ack(found[0])
        return found[1]

    def is_empty(self) -> bool:
        """Return whether no model has a batch."""
        return bool(self._again.is_empty())


class RolloutService(NamedTuple):
    """What rollouts of a model meet at its inference service."""

    status: Literal["continue", "block"]
    version: int
    """Of the weights by which it answers."""


class WeightSyncController(Reference):
    """Which weights rollouts and training have, and when rollouts wait for newer ones."""

    def check_rollout_service_status(self, model_tag: ModelTag) -> Literal["continue", "block"]:
        """Return whether rollouts of a model may ask its inference service."""
        return cast('Literal["continue", "block"]', self._again.check_rollout_service_status(model_tag))

    def wait_rollout_service(self, model_tag: ModelTag, timeout_s: float) -> Literal["continue", "block"]:
        """Return "continue" as soon as rollouts of a model may, "block" after so many seconds."""
        return cast('Literal["continue", "block"]', self._again.wait_rollout_service(model_tag, timeout_s))

    def rollout_service(self, model_tag: ModelTag, timeout_s: float) -> RolloutService:
        """Return whether rollouts of a model may ask its inference service, and the version of its weights.

        It answers as soon as they may, or after so many seconds.
        """
        answer = self._again.rollout_service(model_tag, timeout_s)
        return RolloutService(cast("Any", answer["status"]), int(answer["version"]))

    def get_rollout_model_version(self, model_tag: ModelTag) -> int:
        """Return the version of the weights by which rollouts are made."""
        return int(self._again.get_rollout_model_version(model_tag))

    def train_worker_notify_weight_update(self, worker_name: str, model_tag: ModelTag) -> None:
        """Note that a worker trained a model; returns when weights that are to be synced are."""
        self._actor.train_worker_notify_weight_update(worker_name, model_tag)


def _put_all(pool: Any, group: Sequence[tuple[int, dict[str, Any], bytes]]) -> list[Outcome | Exception]:
    """Return what became of trajectories of a pool."""
    if len(group) == 1:
        return [pool.put_trajectory(*group[0][1:])]
    found = pool.put_trajectories([header for _, header, _ in group], [payload for _, _, payload in group])
    return [each["outcome"] if each.get("outcome") else PutError(each["error"]) for each in found]


class PutError(RuntimeError):
    """A pool has not stored a trajectory; the message is the pool's."""


class RemoteValidator(Reference):
    """The validator, which collects trajectories of validation and makes metrics of them."""

    def put_trajectory(self, trajectory: Trajectory, origin: Origin | None = None) -> Outcome:
        """Keep a trajectory; the answer is always "success"."""
        known = header_of(trajectory, (), origin)
        header = {name: known[name] for name in _OF_VALIDATION if name in known}
        target = self._again if header.get("task_id") else self._actor
        return cast("Outcome", target.put_trajectory(header, pack(trajectory)))

    def put_trajectories(self, puts: Sequence[tuple[Trajectory, Origin]]) -> list[Outcome | Exception]:
        """Keep trajectories of tasks; see TrajectoryPool.put_trajectories."""
        futures: list[Any] = []
        for trajectory, origin in puts:
            known = header_of(trajectory, (), origin)
            header = {name: known[name] for name in _OF_VALIDATION if name in known}
            futures.append(self._again.put_trajectory.remote(header, pack(trajectory)))
        return [future.result() for future in futures]

    def compute_and_log_metrics(self) -> dict[str, float]:
        """Return the mean of each score with prefix "val/", post them, and forget the trajectories."""
        return dict(self._actor.compute_and_log_metrics())


def data_loader_of(given: Any) -> Any:
    """Return what leases the items of a loader: of an actor, or of an object of this process."""
    from fray.rl.data import BaseDataLoader
    from fray.rl.leases import LeasedLoader

    if is_actor(given):
        return RemoteDataLoader(given)
    if isinstance(given, BaseDataLoader):
        shared = vars(given).get("_leased")  # all workers of this process take from the same leases
        if shared is None:
            validate = getattr(given, "_is_validate", False)
            shared = vars(given)["_leased"] = LeasedLoader(given, "validate" if validate else "train")
        return shared
    return given


def trajectory_pool_of(given: Any, key_list: Sequence[str] = ()) -> Any:
    """Return what trajectories are put to: of actors, or an object of this process."""
    several = isinstance(given, (list, tuple))
    return TrajectoryPool(given, key_list) if several or is_actor(given) else given


def train_batch_pool_of(given: Any) -> Any:
    """Return what batches are put to: of an actor, or an object of this process."""
    return TrainBatchPool(given) if is_actor(given) else given


def weight_sync_controller_of(given: Any) -> Any:
    """Return the controller of weights: of an actor, or an object of this process."""
    return WeightSyncController(given) if is_actor(given) else given


def rollout_service_of(controller: Any, model_tag: ModelTag, timeout_s: float) -> RolloutService:
    """Return what WeightSyncController.rollout_service does, also of an object of this process."""
    if isinstance(controller, WeightSyncController):
        return controller.rollout_service(model_tag, timeout_s)
    status = controller.check_rollout_service_status(model_tag)
    if status != "continue" and timeout_s > 0:
        status = controller.wait_rollout_service(model_tag, timeout_s)
    return RolloutService(status, int(controller.get_rollout_model_version(model_tag)))


def validator_of(given: Any) -> Any:
    """Return the validator: of an actor, or an object of this process."""
    return RemoteValidator(given) if is_actor(given) else given
