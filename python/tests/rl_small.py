"""A whole run of two updates, and a program that launches it: `python rl_small.py DIRECTORY`.

All that computes is a mock, which needs no package; what coordinates is the program `fray rl`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from fray.cluster import EnvironmentConfig, ResourceConfig
from fray.rl import Config, NexRLController

STEPS = 2
COORDINATION = (
    "data_loader trajectory_pool train_batch_pool weight_sync_controller"
    " validate_dataloader validator controller"
).split()
TRAINING = ["algorithm_processor", "train_worker"]


def document(out: Path) -> Config:
    """Return the configuration."""
    roles = {role: {"colocation_group": "coordination"} for role in COORDINATION}
    roles |= {role: {"colocation_group": "training"} for role in TRAINING}
    return Config(
        {
            "launch_mode": "ray",
            "seed": 3,
            "out": str(out),
            "data": {
                "type": "mock",
                "num_samples": 8,
                "batch_size": 4,
                "repeat_item": 2,
                "keep_batch_order": True,
            },
            "rollout_worker": {"type": "mock", "num_workers": 2},
            "algorithm": {"type": "mock"},
            "trajectory_pool": {
                "key_list": ["group_id"],
                "group_size": 2,
                "batch_size": 8,
                "check_batch_ready_function": "loaded_batch_finished",
            },
            "weight": {"sync_mode": "sync"},
            "train_worker": {"total_train_steps": STEPS, "save_freq": 1},
            "service": {"inference_service": {"backend": "mock"}, "train_service": {"backend": "mock"}},
            "validate": {"validate_before_train": True, "data": {"type": "mock", "num_samples": 3}},
            "logger": {"backend": ["jsonl"]},
            "roles": roles,
        }
    )


def check(out: Path) -> str:
    """Return what came of the run, after it has been verified."""
    steps = sorted(
        json.loads(file.read_text())["step"] for file in (out / "checkpoints").glob("global_step_*/run.json")
    )
    assert steps == list(range(1, STEPS + 1)), steps
    lines = (out / "metrics" / "metrics.jsonl").read_text().splitlines()
    posted: dict[str, list[Any]] = {}
    for line in map(json.loads, lines):
        for name, value in line["data"].items():
            posted.setdefault(name, []).append(value)
    assert posted["training/batch_size"] == [8] * STEPS
    assert posted["val/num_samples"] == [3]
    return f"result: {len(steps)} checkpoints, {sum(posted['training/batch_size'])} trajectories"


def launched(out: Path, cluster: Any = None, environment: EnvironmentConfig | None = None) -> NexRLController:
    """Return what launches the run, on little."""
    little = ResourceConfig(cpu=0.1, ram="8m")
    groups = ("coordination", "training", "rollout_worker")
    return NexRLController(document(out), cluster, dict.fromkeys(groups, little), environment)


def main(out: Path) -> None:
    """Launch the run, wait for its end, and print what came of it."""
    program = os.environ.get("FRAY_PROGRAM")  # which the nodes of Ray do not know
    environment = EnvironmentConfig(env_vars={"FRAY_PROGRAM": program}) if program else None
    launched(out, environment=environment).run()
    print(check(out))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
