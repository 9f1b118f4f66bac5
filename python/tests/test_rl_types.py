"""Batches: numbered behaviours N1 to N7 and N85, payloads and headers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fray.rl import Batch, NexRLRole
from fray.rl.wire import Origin, PayloadError, header_of, pack, pack_batch, shard_of, unpack, unpack_batch


def test_n1_the_length_is_that_of_the_metadata() -> None:
    assert len(Batch({"x": [1, 2]}, {"batch_size": 2})) == 2
    with pytest.raises(ValueError, match="batch_size"):
        len(Batch({"x": [1, 2]}, {}))


def test_n2_a_copy_shares_nothing() -> None:
    batch = Batch({"x": np.zeros(2), "y": [[1], [2]]}, {"batch_size": 2, "more": {"a": [1]}})
    copy = batch.copy()
    copy.values["x"][0] = 1
    copy.values["y"][0].append(2)
    copy.metadata["more"]["a"].append(2)
    assert (batch.values["x"][0], batch.values["y"][0], batch.metadata["more"]["a"]) == (0, [1], [1])


def test_n3_metadata_wins() -> None:
    assert Batch({"a": 1, "b": 2}, {"batch_size": 1, "b": 3}).to_dict() == {"a": 1, "b": 3, "batch_size": 1}


IDS = [[0, 0, 5, 6, 0, 0], [0, 0, 0, 7, 8, 0]]


def stripped(left: bool, ids: Any, **options: Any) -> Batch:
    values = {"input_ids": ids, "mask": np.ones((2, 6)), "other": np.ones((2, 3)), "text": ["a", "b"]}
    strip = Batch.remove_redundant_left_padding if left else Batch.remove_redundant_right_padding
    return strip(Batch(values, {"batch_size": 2}), 0, **options)


@pytest.mark.parametrize("kind", [np.array, list], ids=["arrays", "lists"])
@pytest.mark.parametrize(
    ("left", "options", "want"),
    [
        (True, {}, [[5, 6, 0, 0], [0, 7, 8, 0]]),
        (True, {"max_strip_threshold": 1}, [[0, 5, 6, 0, 0], [0, 0, 7, 8, 0]]),
        (True, {"max_strip_threshold": 0}, IDS),
        (True, {"max_strip_threshold": 9}, [[5, 6, 0, 0], [0, 7, 8, 0]]),
        (False, {}, [[0, 0, 5, 6, 0], [0, 0, 0, 7, 8]]),
        (False, {"max_strip_threshold": 0}, IDS),
    ],
)
def test_n4_common_padding_is_stripped_up_to_the_threshold(
    kind: Any, left: bool, options: dict[str, int], want: list[list[int]]
) -> None:
    got = stripped(left, kind(IDS), **options)
    assert [list(row) for row in got.values["input_ids"]] == want
    assert got.values["mask"].shape == (2, len(want[0]))
    assert got.values["other"].shape == (2, 3)
    assert got.values["text"] == ["a", "b"]


def test_n4_only_the_fields_that_are_named() -> None:
    got = stripped(True, np.array(IDS), fields=["input_ids"])
    assert (got.values["input_ids"].shape, got.values["mask"].shape) == ((2, 4), (2, 6))


def test_n5_without_common_padding_nothing_changes() -> None:
    ids = np.array([[0, 1, 2], [0, 0, 3]])
    batch = Batch({"input_ids": ids}, {"batch_size": 2})
    assert Batch.remove_redundant_right_padding(batch, 0) is batch


@pytest.mark.parametrize("anchor", [None, np.zeros(4), np.zeros((2, 2, 2)), [[1], [1, 2]], np.zeros((0, 3))])
def test_n6_without_a_matrix_as_anchor_nothing_changes(anchor: Any) -> None:
    batch = Batch({} if anchor is None else {"input_ids": anchor}, {"batch_size": 2})
    assert Batch.remove_redundant_left_padding(batch, 0) is batch
    assert Batch.remove_redundant_right_padding(batch, 0) is batch


def test_padding_is_found_as_by_counting() -> None:
    """An oracle: columns are removed one by one while all rows have padding there."""
    random = np.random.default_rng(5)
    for _ in range(200):
        ids = random.integers(0, 2, (random.integers(1, 4), random.integers(1, 6)))
        batch = Batch({"input_ids": ids}, {"batch_size": len(ids)})
        left = right = ids
        while left.shape[1] and not left[:, 0].any():
            left = left[:, 1:]
        while right.shape[1] and not right[:, -1].any():
            right = right[:, :-1]
        got = Batch.remove_redundant_left_padding(batch, 0).values["input_ids"]
        np.testing.assert_array_equal(got, left)
        np.testing.assert_array_equal(
            Batch.remove_redundant_right_padding(batch, 0).values["input_ids"], right
        )


def test_n7_trajectories_with_other_fields_make_no_batch() -> None:
    with pytest.raises(ValueError, match=r"trajectory 1 .* lacks \['b'\] and has \['c'\]"):
        Batch.from_trajectories([{"a": 1, "b": 2}, {"a": 1, "c": 2}])


def test_a_batch_of_trajectories_and_back() -> None:
    trajectories = [{"prompt": "a", "n": 1}, {"prompt": "b", "n": 2}]
    batch = Batch.from_trajectories(trajectories)
    assert batch.metadata == {"batch_size": 2, "model_tag": "default", "temperature": 1.0}
    assert batch.to_trajectories() == trajectories


def test_n85_a_batch_for_the_trainer() -> None:
    values = {
        "ids": np.ones((2, 3)),
        "text": ["a", "b"],
        "calls": [[1], [2]],
        "odd": np.array([{}, 1], object),
    }
    got = Batch(values, {"batch_size": 2}).to_nextrainer_batch()
    assert list(got) == ["batch", "non_tensor_batch", "meta_info"]
    assert list(got["batch"]) == ["ids"]
    assert {key: value.dtype for key, value in got["non_tensor_batch"].items()} == {
        "text": object,
        "calls": object,
        "odd": object,
    }
    assert list(got["non_tensor_batch"]["calls"]) == [[1], [2]]
    assert got["meta_info"] == {"batch_size": 2}


def test_roles_are_those_of_the_guide() -> None:
    assert [role.value for role in NexRLRole] == (
        "rollout_worker train_worker algorithm_processor trajectory_pool train_batch_pool"
        " weight_sync_controller data_loader validate_dataloader validator"
    ).split()


@pytest.mark.parametrize("size", [3, 100_000])
def test_payloads_carry_values_large_and_small(size: int) -> None:
    value = {
        "ids": np.arange(size),
        "text": "x" * size,
        "raw": b"y" * size,
        "none": None,
        "nested": [{"a": 1.5}],
    }
    got = unpack(pack(value))
    np.testing.assert_array_equal(got.pop("ids"), value.pop("ids"))
    assert got == value


def test_batches_are_payloads() -> None:
    batch = Batch({"x": np.ones((2, 3))}, {"batch_size": 2, "model_tag": "m"})
    got = unpack_batch(pack_batch(batch))
    assert (got.metadata, got.values["x"].shape) == (batch.metadata, (2, 3))


@pytest.mark.parametrize("cut", [0, 7, 8, 20, -1])
def test_bytes_that_are_no_payload(cut: int) -> None:
    with pytest.raises(PayloadError, match="malformed"):
        unpack(pack({"x": "y" * 50})[:cut])
    with pytest.raises(PayloadError, match="malformed"):
        unpack(b"\xff" * 40)


def test_what_cannot_be_packed_is_named() -> None:
    with pytest.raises(PayloadError, match=r"\.tools: a set"):
        pack({"tools": {1, 2}})


def test_headers_have_what_go_reads() -> None:
    trajectory = {
        "prompt": "p",
        "tokens": [1, 2, 3],
        "reward": np.float32(0.5),
        "score": {"exact": 1, "text": "no", "flag": True},
        "temperature": 0.7,
        "group_id": np.int64(7),
        "data_source": "gsm",
    }
    got = header_of(trajectory, ["group_id", "absent"], Origin("0/1/2", "lease-1", 3, 4))
    assert got == {
        "model_tag": "default",
        "keys": {"group_id": 7},
        "fields": sorted(trajectory),
        "scores": {"exact": 1.0, "reward": 0.5},
        "tokens": 3,
        "temperature": 0.7,
        "data_source": "gsm",
        "task_id": "0/1/2",
        "lease": "lease-1",
        "epoch": 3,
        "version": 4,
    }
    with pytest.raises(PayloadError, match="group key 'g' is list"):
        header_of({"g": [1]}, ["g"])


def test_a_group_meets_in_one_pool() -> None:
    shards = [shard_of([f"group-{i}"], 8) for i in range(400)]
    assert shards == [shard_of([f"group-{i}"], 8) for i in range(400)]
    assert min(shards.count(i) for i in range(8)) > 20
    assert shard_of(["1"], 1 << 20) != shard_of([1], 1 << 20)
