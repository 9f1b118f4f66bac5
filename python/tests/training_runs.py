"""Runs of a train worker against files, which may be killed at any write; also a program that does it.

    python training_runs.py DIRECTORY

It runs the worker once to the end, then again and again from nothing, each time killing the process before
its n-th change of the checkpoints' directory, for all n, and starting it again. It prints JSON: for each n
where it was resumed and a digest of the weights at the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fray.rl.batch_states import states_in, with_state
from fray.rl.config import Config
from fray.rl.nexrl_types import Batch
from fray.rl.train.checkpoints import find_latest_checkpoint
from fray.rl.train.client import Trained, TrainServiceClient
from fray.rl.train.service import TrainOutcome, TrainService
from fray.rl.train.worker import TrainWorker
from fray.rl.wire import pack_batch

STEPS, SAVE_FREQ = 7, 2
CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree")


class Momentum(TrainService):
    """A model whose weights depend on all batches and on their order."""

    def build(self, config: Mapping[str, Any]) -> None:
        self.w = np.full(4, float(config.get("seed", 0)))
        self.momentum = np.zeros(4)

    def update(self, batch: Batch) -> dict[str, float]:
        gradient = np.asarray(batch.values["x"]).mean(axis=0) - 0.1 * np.sin(self.w)
        self.momentum = 0.9 * self.momentum + gradient
        self.w = self.w - 0.1 * self.momentum
        return {"loss": float((self.w**2).sum())}

    def state(self) -> Mapping[str, Any]:
        return {"w": self.w, "momentum": self.momentum}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.w, self.momentum = state["w"], state["momentum"]

    def weights(self) -> Mapping[str, Any]:
        return {"w": self.w}


class Direct(TrainServiceClient):
    """A client of a service in this process."""

    def __init__(self, service: TrainService) -> None:
        self.service = service

    def initialize(self, config: Mapping[str, Any]) -> int:
        return int(self.service.initialize(config)["step"])

    def train_batch(self, batch: Batch, batch_id: str = "", step: int | None = None) -> Trained:
        answer = self.service.train_batch(pack_batch(batch), batch_id, step)
        return Trained(TrainOutcome(answer["outcome"]), answer["step"], answer["metrics"])

    def save_checkpoint(self, path: str) -> int:
        return self.service.save_checkpoint(path)

    def load_checkpoint(self, path: str) -> int:
        return self.service.load_checkpoint(path)

    def save_weights(self, path: str) -> int:
        return self.service.save_weights(path)

    def get_step(self) -> int:
        return self.service.get_step()


def batch_of(number: int) -> Batch:
    x = np.random.default_rng(number).standard_normal((8, 4))
    return Batch({"x": x}, {"batch_size": 8, "model_tag": "default"})


class FilePool:
    """A train batch pool whose state outlives the process: which consumer has which batch."""

    def __init__(self, path: Path, most: int = STEPS) -> None:
        self.path, self.most = path, most
        self.state: dict[str, Any] = {"next": 0, "held": {}, "acknowledged": []}
        if path.exists():
            self.state = json.loads(path.read_text())

    def _save(self) -> None:
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.state))
        partial.replace(self.path)

    def take(self, model: str | None, consumer: str) -> tuple[str, Batch, str] | None:
        held = self.state["held"]
        if consumer not in held:
            if self.state["next"] >= self.most:
                return None
            held[consumer] = self.state["next"]
            self.state["next"] += 1
            self._save()
        number = held[consumer]
        batch = with_state(batch_of(number), "algorithm_processor_0", {"kl_coef": number + 1})
        return f"batch-{number}", batch, str(model)

    def ack(self, batch_id: str) -> None:
        number = int(batch_id.removeprefix("batch-"))
        held = self.state["held"]
        for consumer in [consumer for consumer, found in held.items() if found == number]:
            del held[consumer]
        self.state["acknowledged"] = sorted({*self.state["acknowledged"], number})
        self._save()


class FileWeights:
    """A weight sync controller that only counts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get_train_model_version(self, _tag: str) -> int:
        return int(self.path.read_text()) if self.path.exists() else 0

    def train_worker_notify_weight_update(self, _worker: str, tag: str) -> None:
        partial = self.path.with_suffix(".partial")
        partial.write_text(str(self.get_train_model_version(tag) + 1))
        partial.replace(self.path)


def config_of(root: Path, **more: Any) -> Config:
    given = {
        "total_train_steps": STEPS,
        "save_freq": SAVE_FREQ,
        "checkpoint_path": str(root / "checkpoints"),
        "sync_weight_path": str(root / "sync"),
        "remove_previous_ckpt": True,
        "train_service": {"seed": 3, "model_tag": "default"},
    }
    return Config({**given, **more})


def worker_of(root: Path, **more: Any) -> TrainWorker:
    worker = TrainWorker(config_of(root, **more), Direct(Momentum()))
    worker.set_module_name("train_worker_0")
    worker.set_module_references(FilePool(root / "pool.json"), FileWeights(root / "version"))
    return worker


def train(root: Path) -> int:
    """Run a worker to its last step, from the newest checkpoint. Returns the step that it began with."""
    worker = worker_of(root)
    worker.initialize_workers()
    newest = find_latest_checkpoint(root / "checkpoints")
    began = worker.load_checkpoint(str(newest or ""))
    worker._main_loop()
    assert worker.health_check(), worker._failure
    (root / "digest").write_text(digest(worker))
    return began


def digest(worker: TrainWorker) -> str:
    client = worker._service
    assert isinstance(client, Direct)
    arrays = client.service.state()
    return hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays))).hexdigest()


def killed_at(root: Path, change: int) -> int:
    """Train in a child process that is killed before its n-th change. Returns 0 if it reached the end."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    made = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal made
        writes = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if (event in CHANGES or writes) and "checkpoints" in str(arguments[0]):
            made += 1
            if made == change:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    status = 1
    try:
        train(root)
        status = 0
    finally:
        os._exit(status)


def main(root: Path) -> None:
    whole = root / "whole"
    whole.mkdir()
    train(whole)
    outcome: dict[str, Any] = {"whole": (whole / "digest").read_text(), "killed": []}
    change = 0
    while True:
        change += 1
        run = root / "run"
        run.mkdir()
        status = killed_at(run, change)
        if status == 0:
            break
        assert status == -signal.SIGKILL, status
        left = find_latest_checkpoint(run / "checkpoints")
        began = train(run)
        pool = FilePool(run / "pool.json").state
        outcome["killed"].append(
            {
                "left": left and left.name,
                "began": began,
                "digest": (run / "digest").read_text(),
                "version": FileWeights(run / "version").get_train_model_version("default"),
                "acknowledged": pool["acknowledged"],
                "held": pool["held"],
                "states": states_in(run / "checkpoints" / "global_step_6"),
                "files": sorted(entry.name for entry in (run / "checkpoints").iterdir()),
            }
        )
        shutil.rmtree(run)
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
