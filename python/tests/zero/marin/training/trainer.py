"""A trainer whose steps take a moment."""

from __future__ import annotations

import time


class Trainer:
    def __init__(self, path: str) -> None:
        self.path = path

    def train_step(self) -> None:
        time.sleep(0.02)

    def save_checkpoint(self, path: str) -> None:
        print(f"saved {path}", flush=True)
