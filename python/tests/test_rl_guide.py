"""N100: the subclassing examples of the guide that fray.rl comes from, as they stand there."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import fray.rl
from fray.cluster import LocalCluster
from fray.rl import ActivityTrackerProxy, BaseRolloutWorker, Batch
from fray.rl.config import Config
from fray.rl.wire import pack, unpack_batch
from rl_run import Run, inference

ROLLOUT = """
from nexrl import BaseRolloutWorker
from typing import Any

class MyRolloutWorker(BaseRolloutWorker):
    def step(self, task: dict[str, Any]) -> str | None:
        # Extract task data
        if "prompt" not in task:
            return None

        prompt = task["prompt"]

        # Custom processing logic using LLMServiceClient
        result = self._llm_client.completion(prompt, temperature=0.7)

        # Create trajectory
        trajectory = {
            "prompt": prompt,
            "response": result["response"],
            "finish_reason": result["finish_reason"],
            "custom_metadata": task.get("metadata", {}),
            "model_tag": self._llm_client._model_tag
        }

        # Submit to trajectory pool and return result
        return self._put_trajectory(trajectory)
"""

ALGORITHM = """
from nexrl import BaseAlgorithmProcessor

class MyAlgorithmProcessor(BaseAlgorithmProcessor):
    def _fit(self, batch: Batch, update_fn: str):
        # Process trajectories through model services
        processed_values = {}

        for key, values in batch.values.items():
            # Apply custom processing logic
            processed_values[key] = self._process_values(values)

        # Create processed batch
        processed_batch = Batch(
            values=processed_values,
            metadata=batch.metadata
        )

        # Submit to training pool
        self._put_batch(processed_batch, update_fn)
"""

TRACKING = """
# In any module with activity tracker
with self._activity_tracker.track("MyModule", "processing_data"):
    # Perform work that should be tracked
    result = process_data(data)
    # Automatic activity tracking and error reporting

# Check rollout worker specific status
if self._activity_tracker.is_rollout_worker_quiescent():
    logger.info("All rollout workers are idle")

# Log metrics to experiment tracking
self._activity_tracker.experiment_logger_post(
    backend="wandb",
    data={"metric_name": value},
    step=training_step
)
"""

VALIDATION = """
# Validation is automatically triggered by the controller when:
# 1. validate_before_train is enabled (runs before training starts)
# 2. Weight sync completes and validation frequency is configured

# Custom rollout workers should handle validation mode:
def step(self, task: dict[str, Any]) -> str | None:
    # Check if in validation mode
    if self._is_running_validate:
        # Use validation dataloader and validator
        validate_task = self._get_validate_task()
        trajectory = self._process_task(validate_task)
        return self._put_validate_trajectory(trajectory)
    else:
        # Normal training mode
        trajectory = self._process_task(task)
        return self._put_trajectory(trajectory)
"""


@pytest.fixture
def run() -> Iterator[Run]:
    with LocalCluster() as cluster:
        run = Run(cluster)
        yield run
        run.server.shutdown()


@pytest.fixture(autouse=True)
def _nexrl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the name of the guide's package, as programs that keep it do."""
    monkeypatch.setitem(sys.modules, "nexrl", fray.rl)


def defined(source: str, **names: Any) -> dict[str, Any]:
    exec(source, names)
    return names


def started(worker: Any, run: Run) -> Any:
    worker.set_module_name("rollout_worker_0")
    worker.set_module_references(**run.references())
    worker.set_activity_tracker(ActivityTrackerProxy(run.handle("activity_tracker")))
    worker.run()
    return worker


def test_n100_the_rollout_worker(run: Run) -> None:
    with inference() as service:
        config = Config({"inference_service": {"url": service.url, "model_tag": "policy"}})
        worker = started(defined(ROLLOUT)["MyRolloutWorker"](config), run)
        assert run.loader.ended.count(4) == ["success"] * 4
        worker.stop()
        assert service.requests.values[0][1]["temperature"] == 0.7
    _, header, trajectory = run.pool.put.values[0]
    assert header["model_tag"] == "policy"
    assert trajectory == {
        "prompt": "mock prompt 0",
        "response": "0 tpmorp kcom",
        "finish_reason": "stop",
        "custom_metadata": {},
        "model_tag": "policy",
        "group_id": "item-0",  # so that it can be grouped
        "run_id": 0,
    }


def test_n100_the_algorithm_processor(run: Run) -> None:
    kind = defined(ALGORITHM, Batch=Batch)["MyAlgorithmProcessor"]
    kind._process_values = lambda _, values: [value * 2 for value in values]
    payloads = [pack({"x": 1}), pack({"x": 2})]
    run.pool.batches.append({"id": "b", "metadata": {"batch_size": 2}, "payloads": payloads, "headers": []})
    processor = kind(Config({"update_fn": "update_actor"}))
    processor.set_module_name("algorithm_processor_0")
    processor.set_module_references(run.handle("trajectory_pool"), run.handle("train_batch_pool"))
    processor.set_activity_tracker(ActivityTrackerProxy(run.handle("activity_tracker")))
    processor.run()
    (header,) = run.train_pool.put.count(1)
    run.pool.acked.count(1)
    processor.stop()
    assert header["update_fn"] == "update_actor"
    assert unpack_batch(run.train_pool.batches[0]["payload"]).values == {"x": [2, 4]}


def test_n100_activity_tracking(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    class Module:
        _activity_tracker = ActivityTrackerProxy(run.handle("activity_tracker"))

    done: list[str] = []
    logger = logging.getLogger("guide")
    caplog.set_level(logging.INFO, "guide")
    defined(
        TRACKING,
        self=Module(),
        process_data=done.append,
        data="data",
        logger=logger,
        value=0.5,
        training_step=3,
    )
    assert done == ["data"]
    assert [entry[:2] for entry in run.tracker.history] == [("MyModule", "processing_data")]
    assert "All rollout workers are idle" in caplog.text
    ((backend, values),) = run.tracker.posts.values
    assert values.pop("id")
    assert (backend, values) == ("wandb", {"data": {"metric_name": 0.5}, "step": 3})


def test_n100_validation(run: Run) -> None:
    names = defined(VALIDATION, Any=Any)
    names["_process_task"] = lambda _, task: {"prompt": task["prompt"], "reward": 1.0}
    kind: Any = type("Validating", (BaseRolloutWorker,), {n: names[n] for n in ("step", "_process_task")})
    worker = kind(Config({"inference_service": {"url": "http://127.0.0.1:9"}}))
    worker.begin_validate()
    started(worker, run)
    assert run.validation.ended.count(4) == ["success"] * 4
    worker.end_validate()
    assert run.loader.ended.count(4) == ["success"] * 4
    worker.stop()
    prompts = [f"mock prompt {i}" for i in range(4)]
    assert [trajectory["prompt"] for _, _, trajectory in run.validator.put.values] == prompts
    assert [trajectory["prompt"] for _, _, trajectory in run.pool.put.values] == prompts


def test_n100_in_one_process_without_actors() -> None:
    """The guide's local mode: references are the objects themselves."""
    from fray.rl import MockDataLoader, MockRolloutWorker

    class Pool:
        def __init__(self) -> None:
            self.stored: list[Any] = []
            self.full = threading.Event()

        def put_trajectory(self, trajectory: dict[str, Any]) -> str:
            self.stored.append(trajectory)
            if len(self.stored) == 4:
                self.full.set()
            return "success"

    class Weights:
        def check_rollout_service_status(self, model_tag: str) -> str:
            del model_tag
            return "continue"

        def get_rollout_model_version(self, model_tag: str) -> int:
            del model_tag
            return 0

    class Tracker:
        def is_quiescent(self) -> bool:
            return True

    loader, pool = MockDataLoader(Config({"num_samples": 2, "repeat_item": 2})), Pool()
    worker = MockRolloutWorker(Config())
    worker.set_module_references(pool, loader, Weights(), None, None)
    worker.set_activity_tracker(ActivityTrackerProxy(Tracker()))
    worker.run()
    assert pool.full.wait(60)
    worker.stop()
    assert [(t["group_id"], t["run_id"]) for t in pool.stored] == [
        ("item-0", 0),
        ("item-0", 1),
        ("item-1", 0),
        ("item-1", 1),
    ]
