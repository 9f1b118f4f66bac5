"""The task: answer three digits with the same digits, from the last to the first.

`python reverse.py DIRECTORY` writes its prompts: train.jsonl and, of other
numbers, validate.jsonl.
"""

import json
import random
import sys
from pathlib import Path

VALIDATION = 200  # of the thousand numbers


def target(prompt: str) -> str:
    return prompt[::-1]


def scores(prompt: str, response: str) -> dict[str, float]:
    """The share of places that are right, half of it where the length is not, and whether all is."""
    wanted = target(prompt)
    right = sum(a == b for a, b in zip(wanted, response, strict=False)) / len(wanted)
    whole = len(response) == len(wanted)
    return {"reward": right if whole else right / 2, "exact_match": float(response == wanted)}


def split() -> tuple[list[str], list[str]]:
    """Prompts to train with, and others to validate with."""
    numbers = [f"{n:03}" for n in range(1000)]
    random.Random(7).shuffle(numbers)
    return numbers[VALIDATION:], numbers[:VALIDATION]


def write(directory: Path) -> None:
    for name, prompts in zip(("train", "validate"), split(), strict=True):
        lines = [json.dumps({"prompt": prompt, "data_source": "reverse"}) for prompt in prompts]
        (directory / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
