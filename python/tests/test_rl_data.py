"""Data loaders of Python and their leases: as N9 to N18 have it of those in Go, and N43."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fray.rl import Config, ConfigError, MockDataLoader
from fray.rl.data import BufferedDataLoader, DataLoaderError
from fray.rl.leases import LeasedLoader
from rl_run import jsonl


def indices(loader: BufferedDataLoader, count: int = 100) -> list[Any]:
    found: list[Any] = []
    while len(found) < count and (item := loader.get_next_item()) is not None:
        found.append(item.get("index"))
    return found


def test_items_are_repeated_as_one_group() -> None:
    loader = MockDataLoader(Config({"num_samples": 2, "batch_size": 2, "repeat_item": 2}))
    assert len(loader) == 4
    found = [loader.get_next_item() for _ in range(4)]
    assert [(item["group_id"], item["run_id"]) for item in found if item] == [
        ("item-0", 0),
        ("item-0", 1),
        ("item-1", 0),
        ("item-1", 1),
    ]
    assert loader.get_next_item() is None
    assert loader.is_finished()
    assert not loader.can_return_item()
    assert indices(MockDataLoader(Config({"num_samples": 2, "repeat_item": 2}), is_validate=True)) == [0, 1]


def test_with_batch_order_the_next_batch_waits() -> None:
    loader = MockDataLoader(Config({"num_samples": 4, "batch_size": 2, "keep_batch_order": True}))
    assert loader.can_return_item()
    assert indices(loader) == [0, 1]
    assert not loader.can_return_item()
    assert not loader.is_finished()
    loader.unlock_for_next_batch()
    assert loader.can_return_item()
    assert indices(loader) == [2, 3]
    loader.reset()
    assert indices(loader) == [0, 1]


def test_items_may_be_added_at_both_ends() -> None:
    loader = MockDataLoader(Config({"num_samples": 2, "batch_size": 2}))
    first = loader.get_next_item()
    loader.add_item({"index": "last"})
    loader.add_item_front({"index": "next"})
    assert first is not None
    assert indices(loader) == ["next", 1, "last"]


def test_batches_are_skipped_before_the_first_item() -> None:
    loader = MockDataLoader(Config({"num_samples": 5, "batch_size": 2}))
    assert loader.skip_batches(1) == 1
    assert indices(loader, 1) == [2]
    with pytest.raises(DataLoaderError, match="before the first item"):
        loader.skip_batches(1)
    loader.reset()
    assert loader.skip_batches(9) == 3
    assert loader.is_finished()


def test_the_order_is_that_of_the_seed() -> None:
    config = {"num_samples": 20, "batch_size": 20, "shuffle": True, "seed": 1}
    order = indices(MockDataLoader(Config(config)))
    assert order == indices(MockDataLoader(Config(config)))
    assert order != list(range(20))
    assert sorted(order) == list(range(20))


def test_lines_of_json(tmp_path: Path) -> None:
    loader = jsonl(tmp_path / "items.jsonl", [{"prompt": "a"}, {"prompt": "b", "group_id": 7}])
    first, second = loader.get_next_item(), loader.get_next_item()
    assert first == {"prompt": "a", "group_id": "item-0", "run_id": 0, "index": 0}
    assert second == {"prompt": "b", "group_id": "7", "run_id": 0, "index": 1}
    assert loader[1]["prompt"] == "b"
    for text, problem in (("{}\n{", r"items\.jsonl:2:2: "), ("\n[1]", r"items\.jsonl:2: want a JSON object")):
        (tmp_path / "items.jsonl").write_text(text)
        with pytest.raises(ConfigError, match=problem):
            jsonl_of(tmp_path)
    with pytest.raises(ConfigError, match="data_path is missing"):
        type(loader)(Config())


def jsonl_of(folder: Path) -> None:
    from fray.rl import JsonlDataLoader

    JsonlDataLoader(Config({"data_path": str(folder / "items.jsonl")}))


def test_n43_leases_of_a_lost_worker_come_again() -> None:
    now = [0.0]
    loader = LeasedLoader(MockDataLoader(Config({"num_samples": 2})), ttl=10, clock=lambda: now[0])
    first = loader.lease("a", "1")
    assert first is not None
    now[0] = 9
    loader.renew("a", "1")
    now[0] = 18
    assert loader.status()["leased"] == 1
    now[0] = 19.5
    assert loader.status() | {"position": 0} == {
        "drained": False,
        "leased": 0,
        "finished": False,
        "position": 0,
        "locked": False,
    }
    again = loader.lease("b", "1")
    assert again is not None
    assert (again.item, again.lease.task_id) == (first.item, first.lease.task_id)
    assert again.lease.id != first.lease.id
    assert not loader.put_back(first.lease.id)
    loader.complete(first.lease.id, "success")  # too late: it is b's
    assert loader.status()["leased"] == 1


def test_n43_a_new_life_of_a_worker_ends_the_leases_of_the_last() -> None:
    loader = LeasedLoader(MockDataLoader(Config({"num_samples": 2})))
    first = loader.lease("a", "1")
    again = loader.lease("a", "2")
    assert first is not None
    assert again is not None
    assert first.item == again.item


def test_calls_whose_answers_were_lost_change_nothing_again() -> None:
    source = MockDataLoader(Config({"num_samples": 6, "batch_size": 2, "keep_batch_order": True}))
    loader = LeasedLoader(source)

    def roll_out() -> list[Any]:
        found = []
        while (task := loader.lease("w", "1")) is not None:
            loader.complete(task.lease.id, "success")
            found.append(task.item["index"])
        return found

    assert roll_out() == [0, 1]
    seen = loader.status()["position"]
    assert loader.unlock_for_next_batch(seen)
    assert roll_out() == [2, 3]
    assert not loader.unlock_for_next_batch(seen)  # it has gone on since
    assert roll_out() == []
    for _ in range(2):
        loader.add_item({"index": "added"}, "id")
        loader.add_item_front({"index": "next"}, "other")
    assert roll_out() == ["next", "added"]


def test_a_last_batch_that_is_not_full_may_be_left_out() -> None:
    loader = MockDataLoader(Config({"num_samples": 5, "batch_size": 2, "drop_last": True}))
    assert len(loader) == 4
    assert indices(loader) == [0, 1, 2, 3]
    assert loader.is_finished()


def test_several_passes_are_an_error() -> None:
    """Tasks of the second one would have the ids of the first."""
    with pytest.raises(ConfigError, match="a loader of Python makes one pass"):
        MockDataLoader(Config({"passes": 2}))
