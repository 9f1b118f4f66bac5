"""Modules of Python with the roles in Go, which `fray rl` hosts; N43 with a worker that is killed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors import PATIENCE
from fray.rl import (
    ActivityTrackerProxy,
    Config,
    MockAlgorithmProcessor,
    MockRolloutWorker,
    RemoteDataLoader,
    RemoteValidator,
    TrainBatchPool,
    TrajectoryPool,
    WeightSyncController,
)
from fray.rpc import FixedResolver
from rl_run import killed_amid_a_task
from waiting import eventually

TOP = Path(__file__).parents[2]
ROLES = (
    "data_loader validate_dataloader trajectory_pool train_batch_pool weight_sync_controller validator"
    " activity_tracker"
).split()
DOCUMENT = {
    "data": {"type": "mock", "num_samples": 4, "batch_size": 4, "repeat_item": 2, "lease_ttl": 2},
    "rollout_worker": {"type": "mock"},
    "algorithm": {"type": "mock"},
    "trajectory_pool": {"key_list": ["group_id"], "group_size": 2, "batch_size": 4},
    "weight": {"sync_mode": "fully-async"},
    "train_worker": {"total_train_steps": 2},
    "service": {
        "inference_service": {"backend": "mock", "url": "http://127.0.0.1:9"},
        "train_service": {"backend": "mock"},
    },
    "logger": {"backend": ["jsonl"]},
    "validate": {"data": {"type": "mock", "num_samples": 3}},
    "seed": 3,
}


@pytest.fixture
def address(program: Path, tmp_path: Path) -> Iterator[str]:
    """Host the roles in a process of Go, and give its address."""
    document = tmp_path / "run.json"
    document.write_text(json.dumps({**DOCUMENT, "out": str(tmp_path / "out")}))
    command: list[Any] = [program, "rl", *ROLES, "--config", document]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        yield line.rsplit(" at ", 1)[-1].strip()
        process.terminate()
        process.stderr.read()


def test_modules_of_python_with_roles_in_go(address: str, tmp_path: Path) -> None:
    at = FixedResolver(address).handle
    loader, batches = RemoteDataLoader(at("data_loader")), TrainBatchPool(at("train_batch_pool"))
    tracker = ActivityTrackerProxy(at("activity_tracker"))
    tracker.register_module("rollout_worker_0", "", is_rollout_worker=True)
    with tracker.track("algorithm_processor_0", "thinking"):
        assert "algorithm_processor_0: thinking" in tracker.get_running_status_summary()
        assert not tracker.is_quiescent()
        tracker.beat("algorithm_processor_0")
    assert tracker.wait_quiescent()
    tracker.start("algorithm_processor_0", "begun, and the answer is lost")
    tracker._open.clear()
    assert not tracker.is_quiescent()
    tracker.beat("algorithm_processor_0")
    assert tracker.is_quiescent()
    tracker.set_training_step(5)
    assert tracker.get_training_step() == 5
    assert (len(loader), loader.is_finished(), loader[0]["prompt"]) == (8, False, "mock prompt 0")

    killed_amid_a_task(tmp_path, address)  # its task is another worker's, once its lease is over
    worker = MockRolloutWorker(Config({"key_list": ["group_id"], "lease_ttl": 2, "seed": 3}))
    worker.set_module_name("rollout_worker_0")
    worker.set_module_references(
        at("trajectory_pool"),
        at("data_loader"),
        at("weight_sync_controller"),
        at("validate_dataloader"),
        at("validator"),
    )
    worker.set_activity_tracker(tracker)
    processor = MockAlgorithmProcessor(Config({"batch_size": 4}))
    processor.set_module_name("algorithm_processor_0")
    processor.set_module_references(at("trajectory_pool"), at("train_batch_pool"))
    processor.set_activity_tracker(tracker)
    worker.run()
    processor.run()

    groups: list[Any] = []

    def trained() -> bool:
        taken = batches.take("default", "train_worker_0")
        if taken is not None:
            groups.append(taken[1].values["group_id"])
            batches.ack(taken[0])
        return len(groups) == 2

    eventually(trained)
    assert sorted(group for batch in groups for group in batch) == [f"0/{i // 2}" for i in range(8)]
    pool = TrajectoryPool(at("trajectory_pool"))
    eventually(lambda: pool.is_empty() and loader.status()["leased"] == 0)
    assert (loader.is_finished(), batches.is_empty(), pool.get_model_tags()) == (True, True, ["default"])
    assert tracker.is_rollout_worker_quiescent()

    worker.begin_validate()
    validator = RemoteValidator(at("validator"))
    eventually(validator.is_complete)
    assert validator.compute_and_log_metrics()["val/num_samples"] == 3
    worker.stop()
    processor.stop()
    weights = WeightSyncController(at("weight_sync_controller"))
    assert weights.check_rollout_service_status("default") == "continue"
    assert weights.wait_rollout_service("default", PATIENCE) == "continue"
    assert weights.get_rollout_model_version("default") == 0
    for _ in range(2):  # the second one changes nothing
        tracker.experiment_logger_post("jsonl", post_id="train_worker_0/5", data={"loss": float("nan")})
    lines = (tmp_path / "out" / "metrics" / "metrics.jsonl").read_text().splitlines()
    losses = [line for line in map(json.loads, lines) if "loss" in line["data"]]
    assert [(line["step"], line["data"]) for line in losses] == [(5, {"loss": "NaN"})]
    tracker.report_exception("m", "w", ValueError("bad"))
    assert tracker.get_error_health_status()["status"] == "error"


def test_n87_to_n92_the_proxy_with_the_tracker_in_go(address: str) -> None:
    proxy = ActivityTrackerProxy(FixedResolver(address).handle("activity_tracker"), "life-1")
    proxy.register_module("data_loader", "")
    proxy.register_module("rollout_worker_7", "", is_rollout_worker=True)
    assert not proxy.check_module_liveness(0.2)  # nothing has the second name

    def fails() -> None:
        raise KeyError("lost")

    with proxy.track("rollout_worker_7", "a task"):
        assert not proxy.is_rollout_worker_quiescent()
        assert proxy.get_running_status_summary().startswith("1 under way:\n  rollout_worker_7: a task, for ")
        assert not proxy.wait_quiescent(0.01)
    with pytest.raises(KeyError), proxy.track("trainer", "a step"):
        fails()
    assert proxy.is_quiescent()
    assert proxy.wait_quiescent()

    health = proxy.get_error_health_status()
    assert health["message"] == "1 error in the last 5m0s, the last of trainer during a step: 'lost'"
    counts = [health[f"{name}_count"] for name in ("error_level", "warning_level", "recent_error")]
    assert (health["status"], counts[0], counts[1] >= 1, sum(counts[:2])) == ("error", 1, True, counts[2])
    *_, record = FixedResolver(address).handle("activity_tracker").get_errors()
    fields = ("module_name", "work_context", "severity", "message", "exception_type")
    assert [record[field] for field in fields] == ["trainer", "a step", "error", "'lost'", "KeyError"]
    assert 'raise KeyError("lost")' in record["exception_traceback"]
    assert record["error_id"]
    assert isinstance(record["timestamp"], float)
