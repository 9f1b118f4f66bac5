"""Tasks that a pool has a loader of Python give again."""

from __future__ import annotations

from typing import Any

from fray.rl.config import Config
from fray.rl.data import MockDataLoader
from fray.rl.leases import LeasedLoader


def _lease(loader: LeasedLoader, worker: str) -> tuple[str, str]:
    task = loader.get_next_item(worker, "1")
    return ("", "") if task is None else (task["lease"]["task_id"], task["lease"]["id"])


def _again(number: int, task: str, epoch: int = 0) -> dict[str, Any]:
    return {"number": number, "task_id": task, "epoch": epoch}


def test_n61_task_is_given_again_once() -> None:
    loader = LeasedLoader(MockDataLoader(Config({"num_samples": 3})))
    done = []
    for _ in range(2):
        task, lease = _lease(loader, "w")
        loader.complete(lease, "success")
        done.append(task)
    tasks = [_again(1, done[0]), _again(2, "0/99/0"), _again(3, done[1], epoch=7)]
    assert loader.roll_out_again("pool", 0, tasks) == ["0/99/0"]
    assert loader.roll_out_again("pool", 0, tasks) == []
    assert loader.roll_out_again("other", 0, [_again(1, done[0])]) == []  # it comes next anyhow
    task, lease = _lease(loader, "w")
    assert task == done[0]
    loader.complete(lease, "success")
    task, lease = _lease(loader, "w")
    assert task not in done
    loader.complete(lease, "success")
    assert loader.status()["drained"]


def test_n61_leased_task_comes_again_once_its_lease_ends() -> None:
    loader = LeasedLoader(MockDataLoader(Config({"num_samples": 1})))
    task, lease = _lease(loader, "w")
    assert loader.roll_out_again("pool", 0, [_again(1, task)]) == []
    loader.complete(lease, "success")
    again, lease = _lease(loader, "w")
    assert again == task
    loader.complete(lease, "success")
    assert loader.status()["drained"]
