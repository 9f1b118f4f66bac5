"""A rollout worker whose rollouts are empty."""

from __future__ import annotations

import time
from typing import Any


class RolloutWorker:
    def __init__(self, config: Any, worker_id: int) -> None:
        self.config, self.worker_id = config, worker_id

    def load_checkpoint(self, path: str) -> None:
        print(f"worker {self.worker_id} loaded {path}", flush=True)

    def generate_rollout(self, lesson: dict[str, Any]) -> tuple[list[int], float]:
        time.sleep(0.05)
        lesson["name"] = "math"  # which run_rollout asks for, and the curriculum leaves out
        return [], 1.0

    def write_rollouts(self, rollouts: list[int]) -> None:
        assert rollouts == []
