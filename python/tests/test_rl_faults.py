"""Calls that are made again, losses, and the end of a run: what modules of Python do then."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import training_runs
from actors import PATIENCE
from fray.cluster import LocalCluster
from fray.rl import (
    ActivityTrackerProxy,
    Batch,
    Config,
    MockAlgorithmProcessor,
    MockDataLoader,
    NexRLRole,
    TrajectoryPool,
)
from fray.rl.hosting import Hosting, places_of
from fray.rl.hosts import (
    RewindError,
    TrainBatchPoolHost,
    TrajectoryPoolHost,
    WeightSyncControllerHost,
    actor_of,
)
from fray.rl.leases import LeasedLoader
from fray.rl.train.worker import TrainWorker
from fray.rl.wire import header_of, pack, pack_batch
from fray.rpc.errors import MaybeExecutedError
from rl_run import Run
from test_rl_hosting import BASE, Pool
from training_runs import STEPS, Direct, FilePool, FileWeights, Momentum, worker_of


@pytest.fixture
def run() -> Iterator[Run]:
    with LocalCluster() as cluster:
        made = Run(cluster)
        yield made
        made.server.shutdown()


class Controller:
    """A controller of which the test decides when its run has ended."""

    def __init__(self) -> None:
        self.asked, self.ended = threading.Event(), threading.Event()

    def wait_ended(self, seconds: float) -> dict[str, Any]:
        self.asked.set()
        self.ended.wait(min(seconds, PATIENCE))
        return {"ended": self.ended.is_set(), "reason": "finished: 3 steps"}


def test_a_process_ends_with_its_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that is not there yet, or was killed, is no end."""
    from fray.rl import hosting

    monkeypatch.setattr(hosting, "_LONGEST_PAUSE", 0.1)
    monkeypatch.setattr(hosting, "_WAIT", 0.1)
    config = Config(BASE)
    hosted = Hosting(config, places_of(["algorithm_processor"], config), run.cluster)
    waiting = threading.Thread(target=hosted.wait)
    waiting.start()
    controllers = [Controller(), Controller()]
    for controller in controllers:
        assert waiting.is_alive()
        run.server.register("controller", controller, max_concurrency=4)
        assert controller.asked.wait(PATIENCE)
        if controller is controllers[0]:
            run.server.unregister("controller")
    controllers[1].ended.set()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()
    assert hosted.failure is None
    assert hosted.has_ended
    controllers[0].ended.set()


def processor(run: Run, kind: Callable[[Any], MockAlgorithmProcessor]) -> MockAlgorithmProcessor:
    one = kind(Config({"logger": {"backend": "jsonl"}}))
    one.set_module_name("algorithm_processor_0")
    one.set_module_references(run.handle("trajectory_pool"), run.handle("train_batch_pool"))
    one.set_activity_tracker(ActivityTrackerProxy(run.handle("activity_tracker")))
    run.pool.batches.append(
        {"id": "b", "metadata": {"batch_size": 1}, "payloads": [pack({"x": 1})], "headers": []}
    )
    return one


def test_n88_metrics_of_a_batch_have_its_id_at_each_try(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from fray.rl import algorithm

    monkeypatch.setattr(algorithm, "_LONGEST_PAUSE", 0.0)
    tries = []

    class Failing(MockAlgorithmProcessor):
        def _fit(self, batch: Batch, update_fn: str) -> None:
            self._put_batch(batch, update_fn)
            self._post_metrics({"critic/kl": 0.5})
            tries.append(1)
            if len(tries) == 1:
                raise ArithmeticError("after the post")

    one = processor(run, Failing)
    one.run()
    assert run.pool.acked.count(1) == ["b"]
    one.stop()
    posts = [values["id"] for _, values in run.tracker.posts.values]
    assert posts == ["algorithm_processor_0/b"] * 2
    assert len(run.train_pool.put.values) == 1


def test_a_batch_that_cannot_be_queued_when_it_stops_stays_the_pools(run: Run) -> None:
    class Away:
        def put_batch(self, *_: Any) -> bool:
            one._stopping.set()
            raise MaybeExecutedError("the pool is away")

    one = processor(run, MockAlgorithmProcessor)
    pool: Any = one._train_batch_pool
    pool._again = Away()
    batch = one._take(None)
    assert batch is not None
    one._process(batch)
    assert run.pool.acked.values == []
    assert "b" in run.pool.taken


def test_a_tracker_that_is_away_is_no_try(run: Run) -> None:
    class Away:
        def __getattr__(self, name: str) -> Any:
            raise MaybeExecutedError("the tracker is away")

    one = processor(run, MockAlgorithmProcessor)
    one._activity_tracker = Away()  # type: ignore[assignment]
    batch = one._take(None)
    assert batch is not None
    one._process(batch)
    assert [header["source"] for header in run.train_pool.put.values] == ["b"]
    assert run.pool.acked.values == ["b"]


def test_a_module_that_still_ends_is_not_run_again(run: Run) -> None:
    entered, gate = threading.Event(), threading.Event()

    class Slow(MockAlgorithmProcessor):
        def _fit(self, batch: Batch, update_fn: str) -> None:
            del batch, update_fn
            entered.set()
            assert gate.wait(PATIENCE)

    one = processor(run, Slow)
    one.run()
    assert entered.wait(PATIENCE)
    one._stopping.set()
    with pytest.raises(RuntimeError, match="still ends its last batch"):
        one.run()
    gate.set()
    one.stop()
    one.run()  # now it can
    one.stop()


def test_without_checkpoints_a_lost_model_is_an_error(tmp_path: Path) -> None:
    worker = worker_of(tmp_path, save_freq=0)
    service = Momentum()
    worker._client = Direct(service)
    worker.initialize_workers()
    taken = worker._take(1)
    assert taken is not None
    worker._step(taken.batch, taken.id)
    service._config = None  # it was started again
    worker.run()
    assert worker._thread is not None
    worker._thread.join(PATIENCE)
    assert not worker.health_check()
    assert "has lost its model of step 1" in str(worker._failure)
    assert "set save_freq to 1 or more" in str(worker._failure)


def test_without_checkpoints_a_killed_worker_resumes_at_its_step(tmp_path: Path) -> None:
    service = Momentum()

    def worker() -> TrainWorker:
        one = worker_of(tmp_path, save_freq=0)
        one._client = Direct(service)
        return one

    first = worker()
    first.initialize_workers()
    for _ in range(2):
        taken = first._take(first.get_train_step() + 1)
        assert taken is not None
        first._step(taken.batch, taken.id)
    taken = first._take(3)
    assert taken is not None
    first._train(taken.batch, taken.id)  # and it is killed before anything else
    second = worker()
    assert second.load_checkpoint("") == 3  # as the controller has a restarted worker do
    second.run()
    assert second._thread is not None
    second._thread.join(PATIENCE)
    whole = worker_of(tmp_path / "whole", save_freq=0)
    (tmp_path / "whole").mkdir()
    whole.initialize_workers()
    whole.run()
    assert whole._thread is not None
    whole._thread.join(PATIENCE)
    assert training_runs.digest(second) == training_runs.digest(whole)
    pool = FilePool(tmp_path / "pool.json").state
    assert (pool["held"], pool["acknowledged"]) == ({}, list(range(STEPS)))
    assert FileWeights(tmp_path / "version").get_train_model_version("default") == STEPS


def test_n69_scores_that_are_no_finite_numbers_are_skipped() -> None:
    scores = {"a": math.nan, "b": math.inf, "c": 2, "d": True, "e": "x"}
    header = header_of({"scores": scores, "reward": 1.0, "temperature": math.nan}, ())
    assert header["scores"] == {"c": 2.0, "reward": 1.0}
    assert "temperature" not in header


def test_n93_any_model_and_all_tags(run: Run) -> None:
    hosts = [actor_of(NexRLRole.TRAJECTORY_POOL, Pool()) for _ in range(2)]
    for i, host in enumerate(hosts):
        run.server.register(f"trajectory_pool_{i}", host)
    pool = TrajectoryPool([run.handle(f"trajectory_pool_{i}") for i in range(2)])
    assert pool.get_batch_any(1) is None
    pool.put_trajectory({"x": 1})
    batch = pool.get_batch_any(1)
    assert batch is not None
    assert batch.values["x"] == [1]
    assert pool.get_batch_any(1) is None
    assert pool.is_empty()
    assert pool.get_model_tags() == ["default"]


def test_n58_a_loader_of_python_goes_back_to_its_state() -> None:
    """Locked batches are read again, too; what was not done then comes first; leases have the new epoch."""
    section = Config({"num_samples": 4, "batch_size": 2, "keep_batch_order": True})

    def ids(loader: LeasedLoader, most: int) -> list[str]:
        found = []
        for i in range(most):
            task = loader.lease(f"w{i}", "1")
            if task is None:
                break
            assert task.lease.epoch == 3
            found.append(task.lease.task_id)
        return found

    loader = LeasedLoader(MockDataLoader(section))
    tasks = [loader.lease(f"w{i}", "1") for i in range(2)]
    assert tasks[0] is not None
    loader.complete(tasks[0].lease.id, "success")
    loader.unlock_for_next_batch()
    third = loader.lease("w2", "1")
    assert third is not None
    loader.complete(third.lease.id, "success")
    state = loader.snapshot()
    again = LeasedLoader(MockDataLoader(section))
    again.restore(state, 3)
    assert ids(again, 9) == ["0/1/0", "0/3/0"]
    assert again.is_finished() is False  # they are leased
    loader.restore(state, 3)
    assert ids(loader, 9) == ["0/1/0", "0/3/0"]


def test_pools_of_python_forget_when_the_run_goes_back() -> None:
    class Clearing(Pool):
        def clear(self) -> None:
            self.stored.clear()

    pool = TrajectoryPoolHost(Clearing())
    old, new = {"task_id": "a"}, {"task_id": "a", "epoch": 1}
    for _ in range(2):
        assert pool.put_trajectory({**old, "task_id": "x"}, pack({"x": 1})) == "success"
        assert pool.put_trajectory(old, pack({"x": 1})) == "success"
        assert pool.get_batch(2, None, "c") is None or not pool.is_empty()
        pool.rewind(0)
        assert pool.is_empty()
    pool.rewind(1)
    assert pool.put_trajectory(old, pack({"x": 1})) == "re-rollout"
    assert pool.put_trajectory(new, pack({"x": 1})) == "success"
    stuck = TrajectoryPoolHost(Pool())
    stuck.rewind(1)
    assert stuck.put_trajectory(new, pack({"x": 1})) == "success"
    with pytest.raises(RewindError, match="Pool has no method clear"):
        stuck.rewind(2)

    class Batches:
        def __init__(self) -> None:
            self.stored: list[Batch] = []

        def put_batch(self, batch: Batch, update_fn: str) -> bool:
            del update_fn
            self.stored.append(batch)
            return True

        def is_empty(self) -> bool:
            return not self.stored

        def clear(self) -> None:
            self.stored.clear()

    batches = TrainBatchPoolHost(Batches())
    for _ in range(2):  # of the same id, once for each epoch
        assert batches.put_batch({"id": "b"}, pack_batch(Batch({"x": [1]}, {"batch_size": 1})))
        assert not batches.is_empty()
        batches.rewind(1)
        assert batches.is_empty()


def test_n60_a_controller_of_weights_of_python_counts_once() -> None:
    class Guide:
        """As the guide has it: without ids."""

        def __init__(self) -> None:
            self.ready: list[str] = []
            self.updates: list[tuple[str, str]] = []

        def trajectory_pool_notify_batch_ready(self, model_tag: str) -> None:
            self.ready.append(model_tag)

        def train_worker_notify_weight_update(self, worker_name: str, model_tag: str) -> None:
            self.updates.append((worker_name, model_tag))

        def check_rollout_service_status(self, model_tag: str) -> str:
            del model_tag
            return "continue"

        def is_waiting_for_validation(self) -> bool:
            return len(self.updates) > 1

    value = Guide()
    host = WeightSyncControllerHost(value)
    for _ in range(2):
        host.trajectory_pool_notify_batch_ready("m", "b")
        host.train_worker_notify_weight_update("w", "m", "1")
    assert (value.ready, value.updates) == (["m"], [("w", "m")])
    assert host.status() == {"models": {}, "waiting": [], "settled": True}
    host.set_model_version("m", 0)
    host.train_worker_notify_weight_update("w", "m", "1")
    host.abandon("m")
    assert value.updates == [("w", "m")] * 2
    assert host.status() == {"models": {}, "waiting": ["default"], "settled": False}


def test_n60_an_update_that_is_reported_again_while_it_runs_counts_once() -> None:
    entered, go, calls = threading.Event(), threading.Event(), []

    class Syncing:
        def train_worker_notify_weight_update(self, worker: str, tag: str) -> None:
            calls.append((worker, tag))
            entered.set()
            assert go.wait(PATIENCE)

    host = WeightSyncControllerHost(Syncing())
    threads = [
        threading.Thread(target=host.train_worker_notify_weight_update, args=("w", "m", "1"))
        for _ in range(2)
    ]
    threads[0].start()
    assert entered.wait(PATIENCE)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert calls == [("w", "m")]
