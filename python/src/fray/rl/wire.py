"""How trajectories and batches travel: bytes that Python packs, and a header that the roles in Go read.

A payload is a frame: the number of its parts and the length of each as little-endian integers of 8 bytes,
then the parts. The first is a value by the msgpack codec of fray.rpc, the others are the large arrays and
bytes that it refers to, so that packing and unpacking copy each of them once. Go never looks into it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard

from fray.rl.nexrl_types import DEFAULT_MODEL, Batch, ModelTag, Trajectory
from fray.rpc.codec import Codec, CodecError, decode_result, encode_result

Outcome = Literal["success", "fail", "re-rollout"]
"""The answer to a trajectory that is put: it is stored; it never will be; roll the same task out again."""

TaskOutcome = Literal["success", "fail", "none"]
"""How a worker ended a task; "none": without a trajectory."""

Route = Literal["train", "validate"]
"""Where the trajectory of a task goes."""

_NUMBER = struct.Struct("<Q")
_MEMORY = 64  # how many times its bytes a payload may take when it is decoded
_LEAST_MEMORY = 64 << 20


class PayloadError(ValueError):
    """A value cannot be packed, or bytes are no payload; the message names the field."""


@dataclass(frozen=True)
class Lease:
    """The right of one worker to roll one task out. It is the worker's activity, too."""

    id: str
    route: Route = "train"
    epoch: int = 0
    """Of the run: it grows when the run goes back to a checkpoint."""
    task_id: str = ""
    """Pass over the data, index and repetition: the same in every run."""

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Lease:
        """Return the lease that a loader answered."""
        route: Route = "validate" if value.get("route") == "validate" else "train"
        return cls(str(value["id"]), route, int(value.get("epoch") or 0), str(value.get("task_id") or ""))

    def to_wire(self) -> dict[str, Any]:
        """Return it as a loader answers it."""
        return {"id": self.id, "route": self.route, "epoch": self.epoch, "task_id": self.task_id}


@dataclass(frozen=True)
class Task:
    """An item that a worker has leased."""

    item: dict[str, Any]
    lease: Lease

    @classmethod
    def of(cls, value: Mapping[str, Any] | None) -> Task | None:
        """Return the task that a loader answered."""
        return None if value is None else cls(dict(value["item"]), Lease.of(value["lease"]))


@dataclass(frozen=True)
class Exchange:
    """What a worker asks of a loader at once."""

    done: Sequence[tuple[str, str]] = ()
    """Leases whose tasks have ended, and how."""
    held: Sequence[str] = ()
    """Further leases that the worker knows to have."""
    want: int = 0
    """How many tasks it can begin. Leases that it has and does not name come first."""
    wait: float = 0.0
    """Seconds to wait for a task where there is none."""

    def to_wire(self) -> dict[str, Any]:
        """Return it as a loader takes it."""
        done = [{"lease": lease, "outcome": outcome} for lease, outcome in self.done]
        return {"done": done, "held": list(self.held), "want": self.want, "wait": self.wait}


@dataclass(frozen=True)
class Origin:
    """What is known of how a trajectory came to be, beside its fields."""

    task_id: str = ""
    """A pool stores one trajectory of a task only, however often it is put."""
    lease: str = ""
    epoch: int = 0
    version: int | None = None
    """Of the weights that rolled it out."""

    @classmethod
    def of_lease(cls, lease: Lease, version: int | None = None) -> Origin:
        """Return the origin of what comes of a leased task."""
        return cls(lease.task_id, lease.id, lease.epoch, version)


@dataclass
class PoolBatch:
    """Trajectories that a pool gave, which stay its own until they are acknowledged."""

    id: str
    batch: Batch
    headers: list[dict[str, Any]] = field(default_factory=list)


def pack(value: Any) -> bytes:
    """Return a value as a payload.

    Raises:
        PayloadError: the codec of actors does not carry something in it.
    """
    try:
        data, buffers = encode_result(Codec.MSGPACK, value)
    except CodecError as err:
        where = err.path.removeprefix("result") or "it"
        raise PayloadError(f"a trajectory or batch cannot be packed: {where}: {err.problem}") from err
    parts = [memoryview(data), *(memoryview(buffer).cast("B") for buffer in buffers)]
    lengths = (_NUMBER.pack(len(part)) for part in parts)
    return b"".join([_NUMBER.pack(len(parts)), *lengths, *parts])


def unpack(payload: bytes | bytearray | memoryview) -> Any:
    """Return the value of a payload. Its arrays are read-only views of the payload: copy one to write to it.

    Raises:
        PayloadError: the bytes are no payload.
    """
    whole = memoryview(payload)
    try:
        (count,) = _NUMBER.unpack_from(whole)
        if count < 1 or count > len(whole) // _NUMBER.size:
            raise PayloadError(f"the payload is malformed: {count} parts in {len(whole)} bytes")
        lengths = struct.unpack_from(f"<{count}Q", whole, _NUMBER.size)
        at = _NUMBER.size * (count + 1)
        if at + sum(lengths) != len(whole):
            raise PayloadError(
                f"the payload is malformed: it has {len(whole)} bytes, want {at + sum(lengths)}"
            )
        parts = []
        for length in lengths:
            parts.append(whole[at : at + length])
            at += length
        memory = max(_LEAST_MEMORY, _MEMORY * len(whole))
        return decode_result(Codec.MSGPACK, bytes(parts[0]), parts[1:], memory=memory)
    except (struct.error, CodecError) as err:
        raise PayloadError(f"the payload is malformed: {err}") from err


def header_of(
    trajectory: Trajectory, key_list: Sequence[str], origin: Origin | None = None
) -> dict[str, Any]:
    """Return what the roles in Go read of a trajectory.

    Scores are the numbers in its field `scores`, or in `score` where that is a dictionary, and the numbers
    `score` and `reward`. What is missing, or no finite number, is left out.
    """
    header: dict[str, Any] = {
        "model_tag": str(trajectory.get("model_tag") or DEFAULT_MODEL),
        "keys": {key: _key(key, trajectory[key]) for key in key_list if trajectory.get(key) is not None},
        "fields": sorted(trajectory),
        "scores": scores_of(trajectory),
    }
    if (tokens := trajectory.get("tokens")) is not None:
        header["tokens"] = len(tokens)
    if _is_number(temperature := trajectory.get("temperature")):
        header["temperature"] = float(temperature)
    if isinstance(source := trajectory.get("data_source"), str):
        header["data_source"] = source
    if origin is not None:
        known = {"task_id": origin.task_id, "lease": origin.lease, "epoch": origin.epoch}
        header.update((name, value) for name, value in known.items() if value)
        if origin.version is not None:
            header["version"] = origin.version
    return header


def scores_of(trajectory: Trajectory) -> dict[str, float]:
    """Return the scores of a trajectory by name, see `header_of`."""
    found: dict[str, float] = {}
    for name in ("scores", "score"):
        if isinstance(given := trajectory.get(name), Mapping):
            found.update((str(key), float(value)) for key, value in given.items() if _is_number(value))
    for name in ("score", "reward"):
        if _is_number(value := trajectory.get(name)):
            found[name] = float(value)
    return found


def _key(name: str, value: Any) -> str | int:
    if isinstance(value, str):
        return value
    try:
        return int(value.__index__())
    except AttributeError:
        raise PayloadError(
            f"the group key {name!r} is {type(value).__name__}; want str or int, such as the item's group_id"
        ) from None


def _is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a finite number: journals are JSON, which has no other ones."""
    if isinstance(value, bool) or value is None:
        return False
    dtype = getattr(value, "dtype", None)  # of a scalar of numpy
    number = isinstance(value, (int, float)) or (
        dtype is not None and dtype.kind in "fiu" and not value.shape
    )
    return number and math.isfinite(value)


def pool_batch_of(answer: Mapping[str, Any] | None) -> PoolBatch | None:
    """Return the batch that a trajectory pool answered.

    The metadata are the pool's, which has `batch_size`, `model_tag` and `temperature`.
    """
    if answer is None:
        return None
    trajectories: list[Trajectory] = [unpack(payload) for payload in answer["payloads"]]
    batch = Batch.from_trajectories(trajectories)
    given = {key: value for key, value in (answer.get("metadata") or {}).items() if value is not None}
    batch.metadata.update(given)
    return PoolBatch(str(answer["id"]), batch, [dict(each) for each in answer.get("headers") or ()])


def pack_batch(batch: Batch) -> bytes:
    """Return a batch as the payload of a train batch pool."""
    return pack({"values": batch.values, "metadata": batch.metadata})


def unpack_batch(payload: bytes | bytearray | memoryview) -> Batch:
    """Return the batch of a payload. Raises as `unpack` does."""
    value = unpack(payload)
    if not isinstance(value, dict) or value.keys() != {"values", "metadata"}:
        raise PayloadError("the payload is malformed: a batch has values and metadata")
    return Batch(value["values"], value["metadata"])


def tag_of(batch: Batch) -> ModelTag:
    """Return the tag of a batch's model, "default" if it has none."""
    return str(batch.metadata.get("model_tag") or DEFAULT_MODEL)


def shard_of(keys: Iterable[str | int], shards: int) -> int:
    """Return which of several pools takes a trajectory: one for all of the same group keys."""
    import zlib

    text = "\x00".join(f"{type(key).__name__}:{key}" for key in keys)
    return zlib.crc32(text.encode()) % shards
