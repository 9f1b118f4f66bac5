"""The Python of the guides of NexRL, run as it is written there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fray.cluster import LocalCluster
from fray.rl import ActivityTrackerProxy
from fray.rl.config import Config
from fray.rl.wire import pack, unpack_batch
from rl_run import Run, inference

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


def snippets(guide: str) -> list[str]:
    """Return the Python of a guide."""
    return re.findall(r"```python\n(.*?)```", (GUIDES / guide).read_text(), re.DOTALL)


def defined(source: str, **names: Any) -> dict[str, Any]:
    exec(source, names)
    return names


@pytest.fixture
def run() -> Iterator[Run]:
    with LocalCluster() as cluster:
        made = Run(cluster)
        yield made
        made.server.shutdown()


def first_trajectory(run: Run, kind: Any, items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a worker makes of the first item."""
    for item in reversed(items):
        run.loader.add_item_front(item)
    with inference() as service:
        worker = kind(Config({"inference_service": {"url": service.url, "model_tag": "policy"}}))
        worker.set_module_name("rollout_worker_0")
        worker.set_module_references(**run.references())
        worker.set_activity_tracker(ActivityTrackerProxy(run.handle("activity_tracker")))
        worker.run()
        run.pool.put.count(1)
        worker.stop()
        assert run.tracker.errors.values == []
    found: dict[str, Any] = run.pool.put.values[0][2]
    return found


def test_the_worker_of_the_guide(run: Run) -> None:
    kind = defined(snippets("nexrl.md")[1])["MathWorker"]
    trajectory = first_trajectory(
        run, kind, [{"prompt": "12", "solution": "21", "group_id": "g", "run_id": 0}] * 9
    )
    assert (trajectory["response"], trajectory["reward"], trajectory["group_id"]) == ("21", 1.0, "g")


def test_the_worker_of_the_modules(run: Run) -> None:
    kind = defined(snippets("nexrl-modules.md")[0])["MyRolloutWorker"]
    trajectory = first_trajectory(
        run, kind, [{"prompt": "12", "answer": "2", "group_id": "g", "run_id": 0}] * 9
    )
    assert (trajectory["response"], trajectory["reward"], trajectory["model_tag"]) == ("21", 1.0, "policy")


def test_the_algorithm_of_the_modules(run: Run) -> None:
    kind = defined(snippets("nexrl-modules.md")[1])["MyAlgorithmProcessor"]
    payloads = [pack({"reward": 1.0}), pack({"reward": 0.0})]
    run.pool.batches.append({"id": "b", "metadata": {"batch_size": 2}, "payloads": payloads, "headers": []})
    processor = kind(Config({}))
    processor.set_module_name("algorithm_processor_0")
    processor.set_module_references(run.handle("trajectory_pool"), run.handle("train_batch_pool"))
    processor.set_activity_tracker(ActivityTrackerProxy(run.handle("activity_tracker")))
    processor.run()
    run.pool.acked.count(1)
    processor.stop()
    assert unpack_batch(run.train_pool.batches[0]["payload"]).values["advantages"] == [0.5, -0.5]


def printed(program: str, folder: Path, url: str) -> str:
    """Run a program beside the project of the guide, on this machine, and return what it prints."""
    project = folder / "my_project"
    project.mkdir()
    (project / "rollout.py").write_text(snippets("nexrl.md")[1])
    service = {"inference_service": {"url": url}}
    (folder / "run.json").write_text(json.dumps({"rollout_worker": service, "validate": {"eval": {}}}))
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        "FRAY_CLIENT_SPEC": "local",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_program_with_a_resource_manager(tmp_path: Path) -> None:
    with inference() as service:
        assert printed(snippets("nexrl.md")[0], tmp_path, service.url) == "[True]\n"


def test_the_actors_of_the_modules(tmp_path: Path) -> None:
    before = (
        "from fray.rl import Validator\nfrom fray.rl.config import load\n"
        "from my_project.rollout import MathWorker as MyRolloutWorker\nconfig = load('run.json')\n"
    )
    # A worker without references cannot run: that is what its future raises.
    after = (
        "print(healthy, len(manager.get_actor_wrapper(NexRLRole.ROLLOUT_WORKER)))\n"
        "try:\n    future.result()\n"
        "except Exception as error:\n    print('set_module_references' in str(error))\n"
    )
    with inference() as service:
        text = printed(before + snippets("nexrl-modules.md")[2] + after, tmp_path, service.url)
    assert text == "True 4\nTrue\n"
