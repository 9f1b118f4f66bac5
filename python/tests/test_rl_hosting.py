"""Classes of Python as roles, algorithm processors, and the resource manager: N84, N96, N97 and recovery."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors import PATIENCE
from fray.cluster import LocalCluster
from fray.rl import (
    ActivityTrackerProxy,
    Batch,
    Config,
    ConfigError,
    MockAlgorithmProcessor,
    MockDataLoader,
    NexRLRole,
    TrainBatchPool,
    TrajectoryPool,
    Validator,
    WeightSyncController,
    execute,
    execute_async,
)
from fray.rl.hosting import Hosting, Place, make, places_of
from fray.rl.hosts import actor_of
from fray.rl.wire import Origin, pack
from fray.rpc import ActorServer, FixedResolver
from fray.rpc.errors import ApplicationError
from rl_run import Run

BASE = {
    "data": {"type": "mock", "num_samples": 2, "batch_size": 2},
    "rollout_worker": {"type": "mock", "num_workers": 2},
    "algorithm": {"type": "mock"},
    "trajectory_pool": {"key_list": ["group_id"], "batch_size": 2},
    "seed": 3,
    "service": {"inference_service": {"model_tag": "policy"}},
}


class Pool:
    """A trajectory pool as the guide has it."""

    def __init__(self, config: Any = None) -> None:
        self.config = config
        self.stored: list[dict[str, Any]] = []

    def put_trajectory(self, trajectory: dict[str, Any]) -> str:
        self.stored.append(trajectory)
        return "success"

    def get_batch(self, batch_size: int | None = None, model_tag: str | None = None) -> Batch | None:
        del model_tag
        count = batch_size or 2
        if len(self.stored) < count:
            return None
        taken, self.stored = self.stored[:count], self.stored[count:]
        return Batch.from_trajectories(taken)

    def get_batch_any(self, batch_size: int | None = None) -> Batch | None:
        return self.get_batch(batch_size)

    def is_empty(self, model_tag: str | None = None) -> bool:
        del model_tag
        return not self.stored

    def get_model_tags(self) -> list[str]:
        return ["default"]

    def of_its_own(self, value: int) -> int:
        return value + 1


class TrainPool:
    """A train batch pool as the guide has it."""

    def __init__(self, config: Any = None) -> None:
        del config
        self.queue: deque[Batch] = deque()

    def put_batch(self, batch: Batch, update_fn: str) -> bool:
        del update_fn
        self.queue.append(batch)
        return True

    def get_batch(self, model: str | None = "default") -> Batch | None:
        del model
        return self.queue.popleft() if self.queue else None

    def is_empty(self) -> bool:
        return not self.queue


class Weights:
    """A controller of weights as the guide has it; it blocks twice."""

    def __init__(self, config: Any = None) -> None:
        del config
        self.left = 2

    def check_rollout_service_status(self, model_tag: str) -> str:
        del model_tag
        self.left -= 1
        return "block" if self.left >= 0 else "continue"

    def get_rollout_model_version(self, model_tag: str) -> int:
        return len(model_tag)


@pytest.fixture
def server() -> Iterator[ActorServer]:
    with LocalCluster() as cluster, ActorServer(cluster) as server:
        yield server


def hosted(server: ActorServer, role: NexRLRole, value: Any, config: Any = None) -> Any:
    server.register(role.value, actor_of(role, value, config), max_concurrency=8)
    return FixedResolver(server.address).handle(role.value)


def test_a_pool_of_python(server: ActorServer) -> None:
    value = Pool()
    handle = hosted(server, NexRLRole.TRAJECTORY_POOL, value)
    pool = TrajectoryPool(handle)
    assert pool.is_empty()
    for task in ("0/0/0", "0/0/0", "0/0/1"):  # one is put again
        assert pool.put_trajectory({"prompt": task}, Origin(task)) == "success"
    assert [each["prompt"] for each in value.stored] == ["0/0/0", "0/0/1"]
    first = pool.take(2, consumer="algorithm_processor_0")
    assert first is not None
    assert first.batch.values == {"prompt": ["0/0/0", "0/0/1"]}
    assert not pool.is_empty()  # it is not acknowledged
    repeated = pool.take(2, consumer="algorithm_processor_0")  # the first answer may be lost
    assert repeated is not None
    assert (repeated.id, repeated.batch) == (first.id, first.batch)
    assert pool.take(2, consumer="algorithm_processor_1") is None
    pool.release_consumer("another")
    assert pool.take(2) is None
    pool.release_consumer("algorithm_processor_0")
    again = pool.take(2, consumer="algorithm_processor_0")
    assert again is not None
    assert (again.id, again.batch) == (first.id, first.batch)
    pool.ack(again.id)
    assert pool.is_empty()
    assert pool.get_batch() is None
    assert handle.of_its_own(1) == 2
    assert handle.put_trajectory({"prompt": "plain"}) == "success"  # the guide's call
    assert pool.get_batch_any(1) is not None
    assert pool.get_model_tags() == ["default"]


def test_a_train_batch_pool_of_python(server: ActorServer) -> None:
    pool = TrainBatchPool(hosted(server, NexRLRole.TRAIN_BATCH_POOL, TrainPool()))
    batch = Batch({"x": [1]}, {"batch_size": 1})
    assert pool.put_batch(batch, "update_actor", "b-1")
    assert pool.put_batch(batch, "update_actor", "b-1")
    taken = pool.take(consumer="t")
    assert taken is not None
    assert (taken[1].values, taken[2]) == ({"x": [1]}, "update_actor")
    repeated = pool.take(consumer="t")  # the first answer may be lost
    assert repeated is not None
    assert (repeated[0], repeated[1]) == (taken[0], taken[1])
    assert pool.take() is None
    assert not pool.is_empty()
    pool.release_consumer("t")
    again = pool.take(consumer="t")
    assert again is not None
    assert again[0] == taken[0]
    pool.ack(again[0])
    assert pool.is_empty()
    assert pool.get_batch() is None


def test_a_controller_of_weights_of_python(server: ActorServer) -> None:
    weights = WeightSyncController(hosted(server, NexRLRole.WEIGHT_SYNC_CONTROLLER, Weights()))
    assert weights.wait_rollout_service("m", 0) == "block"
    assert weights.wait_rollout_service("m", PATIENCE) == "continue"
    assert weights.get_rollout_model_version("abc") == 3


def test_a_validator_of_python(server: ActorServer) -> None:
    class Best(Validator):
        def _metrics(self, trajectories: Any) -> dict[str, float]:
            return {**super()._metrics(trajectories), "best": max(each["reward"] for each in trajectories)}

    loader = MockDataLoader(Config({"num_samples": 1}), is_validate=True)
    validator = Best(Config({"logger": {"backend": "jsonl"}}))
    leases = hosted(server, NexRLRole.VALIDATE_DATALOADER, loader)
    validator.set_module_references(leases)
    handle = hosted(server, NexRLRole.VALIDATOR, validator)
    task = leases.get_next_item("w", "1")
    assert task["lease"]["route"] == "validate"
    assert not validator.is_complete()
    assert (
        handle.put_trajectory({"task_id": "a"}, pack({"reward": 1.0, "score": {"x": 1, "y": "no"}}))
        == "success"
    )
    assert handle.put_trajectory({"task_id": "a"}, pack({"reward": 1.0})) == "success"  # again
    assert handle.put_trajectory({"task_id": "b"}, pack({"reward": 0.0, "data_source": "s"})) == "success"
    leases.complete(task["lease"]["id"], "success")
    assert handle.is_complete()
    assert handle.compute_and_log_metrics() == {
        "val/reward": 0.5,
        "val/s/reward": 0.0,
        "val/x": 1.0,
        "val/num_samples": 2.0,
        "val/best": 1.0,
    }
    with pytest.raises(ApplicationError, match="EmptyValidationError: validation has no trajectories"):
        handle.compute_and_log_metrics()
    assert handle.put_trajectory({"task_id": "a"}, pack({"reward": 1.0})) == "success"  # of the next one
    assert handle.compute_and_log_metrics("0/1")["val/num_samples"] == 1
    assert handle.put_trajectory({"task_id": "a"}, pack({"reward": 0.0})) == "success"
    assert handle.compute_and_log_metrics("0/1")["val/reward"] == 1  # again: the answer was lost
    handle.clear()
    with pytest.raises(ApplicationError, match="EmptyValidationError: validation has no trajectories"):
        handle.compute_and_log_metrics("0/1")


def test_a_batch_comes_again_until_it_is_processed() -> None:
    """The processor dies after it had put its batch, before it acknowledged: it is not queued twice."""
    with LocalCluster() as cluster:
        run = Run(cluster)
        payloads = [pack({"x": 1}), pack({"x": 2})]
        headers = [{"task_id": "0/1/0"}, {"task_id": "0/1/0"}]
        run.pool.batches.append(
            {"id": "b", "metadata": {"batch_size": 2}, "payloads": payloads, "headers": headers}
        )

        def processor() -> MockAlgorithmProcessor:
            one = MockAlgorithmProcessor(Config())
            one.set_module_name("algorithm_processor_0")
            one.set_module_references(run.handle("trajectory_pool"), run.handle("train_batch_pool"))
            one.set_activity_tracker(ActivityTrackerProxy(run.handle("activity_tracker")))
            return one

        first = processor()
        batch = first._get_batch()
        first._fit(batch, "f")  # and no more of it
        assert run.pool.taken
        second = processor()
        second.run()
        run.pool.acked.count(1)
        second.stop()
        assert [header["id"] for header in run.train_pool.put.values] == ["b/0"]
        assert run.train_pool.put.values[0]["source"] == "b"
        assert run.train_pool.put.values[0]["tasks"] == ["0/1/0"]
        assert [entry[:2] for entry in run.tracker.history] == [
            ("algorithm_processor_0", "processing a batch")
        ]
        run.server.shutdown()


def test_an_error_of_fit_is_reported_and_the_processor_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from fray.rl import algorithm

    monkeypatch.setattr(algorithm, "_LONGEST_PAUSE", 0.0)
    with LocalCluster() as cluster:
        run = Run(cluster)
        for name in ("bad", "good"):
            batch = {
                "id": name,
                "metadata": {"batch_size": 1},
                "payloads": [pack({"x": name})],
                "headers": [],
            }
            run.pool.batches.append(batch)

        class Failing(MockAlgorithmProcessor):
            def _fit(self, batch: Batch, update_fn: str) -> None:
                if batch.values["x"] == ["bad"]:
                    raise ArithmeticError("no advantage")
                super()._fit(batch, update_fn)

        one = Failing(Config())
        one.set_module_name("algorithm_processor_0")
        one.set_module_references(run.handle("trajectory_pool"), run.handle("train_batch_pool"))
        one.set_activity_tracker(ActivityTrackerProxy(run.handle("activity_tracker")))
        one.run()
        assert run.pool.acked.count(2) == ["bad", "good"]
        assert one.health_check()
        one.stop()
        assert [header["source"] for header in run.train_pool.put.values] == ["good"]
        *tries, dropped = [error[2]["message"] for error in run.tracker.errors.values]
        assert tries == ["no advantage"] * 3
        assert "batch bad of 1 trajectories was dropped: _fit has raised 3 times" in dropped
        run.server.shutdown()


def test_shards_are_asked_in_turn(server: ActorServer) -> None:
    resolver = FixedResolver(server.address)
    values = [Pool(), Pool()]
    for i, value in enumerate(values):
        server.register(f"trajectory_pool_{i}", actor_of(NexRLRole.TRAJECTORY_POOL, value))
    pool = TrajectoryPool([resolver.handle(f"trajectory_pool_{i}") for i in range(2)], ["group_id"])
    for group in range(8):
        for run in range(2):
            pool.put_trajectory({"group_id": group, "run_id": run}, Origin(f"0/{group}/{run}"))
    assert all(value.stored for value in values)
    seen = []
    while (found := pool.take(2)) is not None:
        seen.append(found.batch.values["group_id"])
        pool.ack(found.id)
    assert sorted(seen) == [[group, group] for group in range(8)]
    assert pool.is_empty()


def test_n97_execute_waits_for_a_remote_call_and_runs_a_local_one(server: ActorServer) -> None:
    handle = hosted(server, NexRLRole.TRAJECTORY_POOL, Pool())
    assert execute(handle.of_its_own, 1) == 2
    assert execute(lambda a, b=0: a + b, 1, b=2) == 3
    future = execute_async(handle.of_its_own, 1)
    assert future.result(PATIENCE) == 2
    assert execute_async(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        execute(lambda: 1 // 0)


def test_places() -> None:
    config = Config({**BASE, "roles": {"trajectory_pool": {"count": 2}}})
    places = places_of(["rollout_worker", "trajectory_pool:1", "validator"], config)
    names = [place.name(config) for place in places]
    assert names == ["rollout_worker_0", "rollout_worker_1", "trajectory_pool_1", "validator"]
    assert Place("trajectory_pool").name(BASE) == "trajectory_pool"
    for words, problem in (
        (["rollouts"], '"rollouts" is no role'),
        (["rollout_worker:2"], "has the indices 0 to 1"),
        (["rollout_worker:x"], "has the indices 0 to 1"),
        (["rollout_worker", "rollout_worker:0"], "named twice"),
    ):
        with pytest.raises(ConfigError, match=problem):
            places_of(words, config)


@pytest.mark.parametrize(
    ("role", "section", "problem"),
    [
        ("trajectory_pool", {}, 'trajectory_pool.type = "default" is no class of Python'),
        (
            "rollout_worker",
            {"rollout_worker": {"type": "smple"}},
            'rollout_worker.type = "smple" is no class',
        ),
        ("rollout_worker", {"rollout_worker": {"type": "absent:X"}}, "cannot be imported: No module named"),
        ("rollout_worker", {"rollout_worker": {"type": "json:X"}}, "cannot be imported"),
        ("train_service", {}, "service.train_service.class is missing"),
    ],
)
def test_roles_that_are_not_hosted_by_python(role: str, section: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem.replace(".", r"\.")):
        make(Place(role), Config({**BASE, **section}))


def test_a_process_hosts_its_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    from fray.rl import hosting

    monkeypatch.setattr(hosting, "_HEARTBEAT", 0.01)
    with LocalCluster() as cluster:
        run = Run(cluster, items=2)
        config = Config({**BASE, "validate": {"data": {"type": "mock"}}})
        hosted = Hosting(config, places_of(["rollout_worker", "algorithm_processor"], config), cluster)
        assert hosted.names == ["rollout_worker_0", "rollout_worker_1", "algorithm_processor_0"]
        assert run.tracker.modules.count(3) == [
            ("rollout_worker_0", hosted.address, True),
            ("rollout_worker_1", hosted.address, True),
            ("algorithm_processor_0", hosted.address, False),
        ]
        run.tracker.beats.until(lambda beats: len({module for module, _, _ in beats}) == 3)
        for name in hosted.names:
            run.handle(name).run()
            assert run.handle(name).health_check()
        run.loader.ended.count(2)
        run.handle("rollout_worker_0").begin_validate()
        run.validation.ended.count(2)
        hosted.stop()
        assert run.loader.status()["leased"] == 0
        groups = sorted(header["keys"]["group_id"] for _, header, _ in run.pool.put.values)
        assert groups == ["item-0", "item-1"]  # two workers put them in any order
        run.server.shutdown()


def test_the_program_ends_by_sigterm(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(BASE))
    command = [sys.executable, "-m", "fray.rl", "rollout_worker", "--config", str(tmp_path / "run.json")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ.copy())
    assert process.stderr is not None
    line = next(line for line in process.stderr if line.startswith("fray.rl: "))
    assert line.startswith("fray.rl: rollout_worker_0, rollout_worker_1 at 127.0.0.1:")
    process.send_signal(signal.SIGTERM)
    process.stderr.read()
    assert process.wait(PATIENCE) == 128 + signal.SIGTERM  # so that it is started again
    process.stderr.close()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["rollout_workers"], '"rollout_workers" is no role'),
        (["rollout_worker", "--config", "absent.json"], "cannot read the configuration absent.json"),
    ],
)
def test_the_program_names_what_is_wrong(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fray.rl import __main__, execution

    monkeypatch.setattr(__main__, "set_logging_basic_config", lambda _: None)
    monkeypatch.setenv("FRAY_RL_CONFIG", json.dumps(BASE))
    assert __main__.main(arguments) == 2
    assert problem in capsys.readouterr().err
    del execution


def test_only_the_first_task_of_a_gang_hosts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fray.rl import __main__

    monkeypatch.setattr(__main__, "set_logging_basic_config", lambda _: None)
    monkeypatch.setenv("FRAY_TASK_INDEX", "3")
    assert __main__.main(["train_service:0", "--config", "{}"]) == 2
    assert "this is task 3 of its job" in capsys.readouterr().err
