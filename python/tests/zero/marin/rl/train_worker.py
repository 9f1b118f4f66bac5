"""A training worker whose training takes no time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class TrainWorker:
    def __init__(self, config: Any) -> None:
        self.config = config

    def train_loop(self) -> Iterator[int]:
        yield from range(201)

    def save_checkpoint(self, path: str) -> None:
        print(f"saved {path}", flush=True)
