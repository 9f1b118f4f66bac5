"""The train worker: its order, its checkpoints, and what an interruption leaves of them."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import training_runs
from fray.rl.config import Config, ConfigError
from fray.rl.train import checkpoints
from fray.rl.train.checkpoints import CheckpointError
from fray.rl.train.client import (
    ActorTrainServiceClient,
    MockTrainServiceClient,
    create_train_service_client,
)
from fray.rl.train.service import TrainOutcome, read_arrays
from fray.rl.train.worker import TrainWorker
from fray.rl.wire import pack_batch
from fray.rpc import LocalResolver
from training_runs import SAVE_FREQ, STEPS, Direct, FilePool, FileWeights, Momentum, batch_of, worker_of
from waiting import eventually

PATIENCE = 60.0


class Tracker:
    """Notes what it is told, in order, with what the directory of checkpoints has at that time."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def track(self, module: str, work: str) -> Tracker:
        self.events.append(("begin", module, work))
        return self

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.events.append(("end", type(error).__name__ if error else ""))

    def set_training_step(self, step: int) -> None:
        self.events.append(("step", step))

    def experiment_logger_post(self, backend: str, **kwargs: Any) -> None:
        self.events.append(("post", backend, kwargs["step"]))


def run(worker: TrainWorker) -> None:
    worker.initialize_workers()
    worker.run()
    assert worker._thread is not None
    worker._thread.join(PATIENCE)
    assert not worker._thread.is_alive()


def names(root: Path) -> list[str]:
    return sorted(entry.name for entry in (root / "checkpoints").iterdir())


def test_n53_the_order_of_a_step(tmp_path: Path) -> None:
    tracker = Tracker()
    events = tracker.events

    class Service(Momentum):
        def update(self, batch: Any) -> dict[str, float]:
            events.append("train")
            return super().update(batch)

        def save_weights(self, path: str) -> int:
            events.append(("weights", Path(path).name))
            return super().save_weights(path)

        def save_checkpoint(self, path: str) -> int:
            events.append("checkpoint")
            return super().save_checkpoint(path)

    class Weights(FileWeights):
        def train_worker_notify_weight_update(self, worker: str, tag: str) -> None:
            events.append(("notify", worker, tag))
            super().train_worker_notify_weight_update(worker, tag)

    config = training_runs.config_of(tmp_path, total_train_steps=2, logger={"backend": ["jsonl"]})
    worker = TrainWorker(config, Direct(Service()))
    worker.set_module_name("train_worker_0")
    worker.set_activity_tracker(tracker)  # type: ignore[arg-type]
    worker.set_module_references(FilePool(tmp_path / "pool.json"), Weights(tmp_path / "version"))
    run(worker)
    one = [("begin", "train_worker_0", "batch"), "train", ("weights", "sync")]
    assert events == [
        *one, ("step", 1), ("post", "jsonl", 1), ("notify", "train_worker_0", "default"), ("end", ""),
        *one, ("step", 2), ("post", "jsonl", 2), "checkpoint", ("notify", "train_worker_0", "default"),
        ("end", ""),
    ]  # fmt: skip


def test_n54_it_stops_at_its_last_step(tmp_path: Path) -> None:
    worker = worker_of(tmp_path, total_train_steps=3)
    run(worker)
    assert worker.get_train_step() == 3
    assert worker.health_check()
    pool = FilePool(tmp_path / "pool.json").state
    assert (pool["next"], pool["held"], pool["acknowledged"]) == (3, {}, [0, 1, 2])


def test_n55_a_checkpoint_has_exactly_its_updates(tmp_path: Path) -> None:
    run(worker_of(tmp_path, remove_previous_ckpt=False))
    assert names(tmp_path) == ["global_step_2", "global_step_4", "global_step_6"]
    service = Momentum()
    service.initialize({"seed": 3, "model_tag": "default"})
    for step in range(1, STEPS):
        service.train_batch(pack_batch(batch_of(step - 1)))
        if step % SAVE_FREQ == 0:
            found = tmp_path / "checkpoints" / f"global_step_{step}"
            np.testing.assert_array_equal(read_arrays(found / "state.npz")["w"], service.w)
            np.testing.assert_array_equal(read_arrays(found / "weights.npz")["w"], service.w)
            assert read_arrays(found / "weights.npz")["version"] == step
            assert checkpoints.read_manifest(found) == {"step": step}


def test_n55_zero_disables_checkpoints(tmp_path: Path) -> None:
    run(worker_of(tmp_path, save_freq=0, checkpoint_path=""))
    assert not (tmp_path / "checkpoints").exists()
    assert FilePool(tmp_path / "pool.json").state["acknowledged"] == list(range(STEPS))


def test_n55_the_controller_writes_into_a_checkpoint_before_it_appears(tmp_path: Path) -> None:
    seen = []

    class Controller:
        def checkpoint_saved(self, step: int, path: str) -> None:
            target = tmp_path / "checkpoints" / f"global_step_{step}"
            seen.append((step, Path(path).is_dir(), Path(path).name.startswith("."), target.exists()))
            (Path(path) / "run.json").write_text(json.dumps({"step": step, "seed": 9}))

    worker = worker_of(tmp_path, total_train_steps=2)
    worker.set_module_references(worker._pool, worker._weights, controller=Controller())
    run(worker)
    assert seen == [(2, True, True, False)]
    assert checkpoints.read_manifest(tmp_path / "checkpoints/global_step_2") == {"step": 2, "seed": 9}


def test_n56_auto_takes_the_numeric_maximum(tmp_path: Path) -> None:
    for name in (
        "global_step_9",
        "global_step_10",
        "global_step_x",
        "global_step_011",
        "global_step_12.tmp",
        "x",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / ".global_step_13.tmp-1").mkdir()
    (tmp_path / "global_step_14").touch()  # no directory
    assert checkpoints.resume_path("auto", tmp_path) == tmp_path / "global_step_10"
    assert checkpoints.resume_path("auto", tmp_path / "none") is None
    assert checkpoints.resume_path("disable", tmp_path) is None
    assert checkpoints.latest(["global_step_٣", "global_step_-1", "global_step_"]) is None


def test_n57_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no directory"):
        checkpoints.resume_path("from_path", tmp_path, str(tmp_path / "global_step_3"))
    with pytest.raises(CheckpointError, match=r"resume\.resume_path"):
        checkpoints.resume_path("from_path", tmp_path)
    with pytest.raises(ValueError, match="disable, auto or from_path"):
        checkpoints.resume_path("newest", tmp_path)
    with pytest.raises(CheckpointError, match="no checkpoint"):
        worker_of(tmp_path).load_checkpoint(str(tmp_path / "global_step_3"))


def test_n58_resume_sets_the_step_and_skips_data(tmp_path: Path) -> None:
    run(worker_of(tmp_path, total_train_steps=4))
    resumed = worker_of(tmp_path)
    resumed.initialize_workers()
    assert resumed.load_checkpoint(str(tmp_path / "checkpoints/global_step_4")) == 4
    assert resumed.get_train_step() == 4
    resumed.run()
    eventually(lambda: resumed.get_train_step() == STEPS, PATIENCE)
    resumed.stop()
    whole = worker_of(tmp_path / "whole")
    (tmp_path / "whole").mkdir()
    run(whole)
    assert training_runs.digest(resumed) == training_runs.digest(whole)


def test_n59_the_first_weights_can_be_saved_before_any_update(tmp_path: Path) -> None:
    worker = worker_of(tmp_path)
    worker.initialize_workers()
    assert worker.save_sync_weights() == 0
    arrays = read_arrays(tmp_path / "sync/weights.npz")
    np.testing.assert_array_equal(arrays["w"], np.full(4, 3.0))
    assert arrays["version"] == 0
    assert worker.save_sync_weights(str(tmp_path / "other")) == 0
    assert (tmp_path / "other/weights.npz").exists()


def test_n52_a_worker_takes_batches_of_its_own_tag(tmp_path: Path) -> None:
    asked = []

    class Pool(FilePool):
        def take(self, model: str | None, consumer: str) -> Any:
            asked.append((model, consumer))
            return super().take(model, consumer)

    worker = worker_of(tmp_path, total_train_steps=1, train_service={"model_tag": "critic"})
    worker.set_module_references(Pool(tmp_path / "pool.json"), FileWeights(tmp_path / "version"))
    run(worker)
    assert set(asked) == {("critic", "train_worker_0/1")}


def test_n99_earlier_checkpoints_go_once_a_newer_one_is_there(tmp_path: Path) -> None:
    for step in (2, 4, 10):
        (tmp_path / f"global_step_{step}").mkdir()
    with pytest.raises(CheckpointError, match="is not there"):
        checkpoints.remove_previous(tmp_path, 6)
    checkpoints.remove_previous(tmp_path, 4)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["global_step_10", "global_step_4"]


def test_n99_a_checkpoint_is_there_whenever_its_replacement_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill before the first rename, between the two, behind them, and amid the removal."""

    class Killed(BaseException):
        pass

    def killed_at(moment: int) -> Any:
        count = 0

        def counted(call: Any) -> Any:
            def run(*args: Any, **kwargs: Any) -> Any:
                nonlocal count
                count += 1
                if count > moment:
                    raise Killed
                return call(*args, **kwargs)

            return run

        return counted

    for moment in range(4):
        folder = tmp_path / str(moment)
        for name, content in (("global_step_4", "former"), (".global_step_4.tmp-1", "new")):
            (folder / name).mkdir(parents=True)
            (folder / name / "run.json").write_text(content)
        with monkeypatch.context() as patched:
            dies = killed_at(moment)
            patched.setattr(Path, "rename", dies(Path.rename))
            patched.setattr(shutil, "rmtree", dies(shutil.rmtree))
            with contextlib.suppress(Killed):
                checkpoints.publish(folder / ".global_step_4.tmp-1", folder, 4)
        checkpoints.clean(folder)
        assert [entry.name for entry in folder.iterdir()] == ["global_step_4"]
        expected = "former" if moment < 2 else "new"
        assert (folder / "global_step_4" / "run.json").read_text() == expected


def test_a_worker_that_is_killed_at_any_write_ends_with_the_same_weights(tmp_path: Path) -> None:
    """N55, N58 and N99: the process is killed before each change of the directory, one run for each."""
    program = [sys.executable, training_runs.__file__, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    killed = outcome["killed"]
    assert len(killed) > 20
    assert {each["began"] for each in killed} == {0, 2, 4, 6}
    newest = [int((each["left"] or "global_step_0").removeprefix("global_step_")) for each in killed]
    assert newest == sorted(newest), "a later kill left an older checkpoint"
    for each in killed:
        assert each["digest"] == outcome["whole"], each
        assert each["version"] == STEPS, "each update is made known once"
        assert (each["acknowledged"], each["held"]) == (list(range(STEPS)), {})
        assert each["files"] == ["global_step_6"]
        assert each["states"] == {"algorithm_processor_0": {"kl_coef": 6}}


def test_a_service_that_lost_its_model_gets_the_same_batches_again(tmp_path: Path) -> None:
    class Losing(Momentum):
        updates = 0

        def update(self, batch: Any) -> dict[str, float]:
            Losing.updates += 1
            if Losing.updates in (4, 8):  # it was started again, and this call is made again
                self._config = None
                self.w = np.zeros(4)
                raise ConnectionResetError
            return super().update(batch)

    class Client(Direct):
        def train_batch(self, batch: Any, batch_id: str = "", step: int | None = None) -> Any:
            try:
                return super().train_batch(batch, batch_id, step)
            except ConnectionResetError:
                return super().train_batch(batch, batch_id, step)

    worker = worker_of(tmp_path)
    worker._client = Client(Losing())
    run(worker)
    whole = worker_of(tmp_path / "whole")
    (tmp_path / "whole").mkdir()
    run(whole)
    assert training_runs.digest(worker) == training_runs.digest(whole)
    assert FileWeights(tmp_path / "version").get_train_model_version("default") == STEPS
    assert Losing.updates > STEPS


@dataclass
class Flow:
    """The roles before training: what they state of the data that is on its way."""

    drained: bool = True
    leased: int = 0
    empty: bool = True
    waiting: bool = False

    def status(self) -> dict[str, Any]:
        return {"drained": self.drained, "leased": self.leased}

    def is_empty(self) -> bool:
        return self.empty


class ValidatingWeights(FileWeights):
    flow = Flow()

    def is_waiting_for_validation(self) -> bool:
        return self.flow.waiting


@pytest.mark.parametrize(
    ("flow", "settled"),
    [
        (Flow(), True),
        (Flow(drained=False), False),
        (Flow(leased=1), False),
        (Flow(empty=False), False),
        (Flow(waiting=True), False),
    ],
)
def test_batches_are_acknowledged_when_no_more_can_come(tmp_path: Path, flow: Flow, settled: bool) -> None:
    weights = ValidatingWeights(tmp_path / "version")
    weights.flow = flow
    worker = worker_of(tmp_path, total_train_steps=STEPS)
    worker.set_module_references(worker._pool, weights, data_loader=flow, trajectory_pool=flow)
    worker.initialize_workers()
    for _ in range(3):
        taken = worker._take(worker.get_train_step() + 1)
        assert taken is not None
        worker._step(taken.batch, taken.id)
    FilePool.take, take = lambda *_: None, FilePool.take  # type: ignore[method-assign]
    try:
        worker._settle()
    finally:
        FilePool.take = take  # type: ignore[method-assign]
    assert FilePool(tmp_path / "pool.json").state["acknowledged"] == [0, 1, 2][: 3 if settled else 2]
    assert names(tmp_path) == ["global_step_3" if settled else "global_step_2"]


def test_a_failed_update_is_seen(tmp_path: Path) -> None:
    class Failing(Momentum):
        def update(self, _batch: Any) -> dict[str, float]:
            raise ArithmeticError("the loss is not finite")

    worker = worker_of(tmp_path)
    worker._client = Direct(Failing())
    tracker = Tracker()
    worker.set_activity_tracker(tracker)  # type: ignore[arg-type]
    run(worker)
    assert not worker.health_check()
    assert ("end", "ArithmeticError") in tracker.events


def test_a_batch_is_trained_on_once() -> None:
    service = Momentum()
    payload = pack_batch(batch_of(0))
    assert service.train_batch(payload, "a", 0)["outcome"] == TrainOutcome.UNINITIALIZED
    assert service.get_step() == -1
    service.initialize({"seed": 3})
    first = service.train_batch(payload, "a", 0)
    assert service.train_batch(payload, "a", 0) == {**first, "outcome": "repeated"}
    assert service.train_batch(payload, "b", 0)["outcome"] == TrainOutcome.OTHER_STEP
    assert service.initialize({"seed": 3}) == {"step": 1}, "the same configuration keeps the model"
    assert service.initialize({"seed": 4}) == {"step": 0}


def test_a_client_of_an_actor(tmp_path: Path) -> None:
    resolver = LocalResolver()
    resolver.register("train_service_0", Momentum())
    client = create_train_service_client({"backend": "actor"}, resolver.lookup("train_service_0"))
    assert isinstance(client, ActorTrainServiceClient)
    assert client.get_step() == -1
    assert client.initialize(Config({"seed": 3, "actor": {"optim": {"lr": 0.1}}})) == 0
    trained = client.train_batch(batch_of(0), "a", 0)
    assert (trained.outcome, trained.step) == (TrainOutcome.TRAINED, 1)
    assert client.train_batch(batch_of(0), "a", 0).outcome is TrainOutcome.REPEATED
    assert client.save_checkpoint(str(tmp_path / "c")) == 1
    assert client.load_checkpoint("") == 0
    assert client.load_checkpoint(str(tmp_path / "c")) == 1
    assert client.save_weights(str(tmp_path / "w")) == 1


def test_backends() -> None:
    assert isinstance(create_train_service_client({"backend": "mock"}), MockTrainServiceClient)
    with pytest.raises(ConfigError, match="no actor train_service_0"):
        create_train_service_client({"backend": "actor"})
    with pytest.raises(ConfigError, match="no client of NexTrainer; host its trainer as"):
        create_train_service_client({"backend": "nextrainer"})
    with pytest.raises(ConfigError, match='want "mock", "actor" or "module:Class"'):
        create_train_service_client({"backend": "other"})


def test_a_mock_service_trains(tmp_path: Path) -> None:
    worker = worker_of(tmp_path, train_service={"backend": "mock"})
    worker._client = MockTrainServiceClient()
    run(worker)
    assert worker.get_train_step() == STEPS
    assert worker.load_checkpoint(str(tmp_path / "checkpoints/global_step_6")) == 6
