"""A model that repeats what it is asked."""

from __future__ import annotations


class Model:
    def __init__(self, path: str) -> None:
        self.path = path

    def generate(self, prompts: list[str]) -> list[str]:
        return [f"Response to: {prompt}" for prompt in prompts]


def load_model(path: str) -> Model:
    return Model(path)
