"""Pipelines of marin-zephyr, as a program: `python pipelines.py DIRECTORY [kill]`.

What it prints is a line of JSON for each pipeline. With "kill" the process that works on one of the shards is
killed once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zephyr.dataset import Dataset
from zephyr.runners import InlineRunner

from fray import ResourceConfig

try:
    from zephyr.context import ZephyrContext
except ImportError:  # before October
    from zephyr.execution import ZephyrContext

SMALL = ResourceConfig(cpu=0.25, ram="1g", disk="1g")


class Kill:
    """Kills the process that works on an item, once."""

    def __init__(self, mark: str, item: int) -> None:
        self.mark, self.item = mark, item

    def __call__(self, item: int) -> int:
        if item == self.item and not Path(self.mark).exists():
            Path(self.mark).write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return item


def by_remainder(dataset: Any) -> Any:
    """Shuffle numbers by their remainder, and sum each group."""

    def total(key: int, numbers: Iterator[dict[str, int]]) -> dict[str, int]:
        return {"remainder": key, "sum": sum(number["n"] for number in numbers)}

    return dataset.group_by(key=lambda number: number["n"] % 3, reducer=total, num_output_shards=2)


def main(directory: str, kill: bool) -> None:
    context = ZephyrContext(
        max_workers=2,
        resources=SMALL,
        coordinator_resources=SMALL,
        chunk_storage_prefix=directory,
        name="test",
        max_execution_retries=0,
        stage_runner_factory=_runner,
    )
    print(json.dumps({"cluster": type(context.client.cluster).__name__}))
    numbers = Dataset.from_list(list(range(12)))
    if kill:
        # Not in the last stage: on Iris zephyr of October takes a restarted worker for another one,
        # which it lets go as idle while the shard of the former is in flight.
        dicts = numbers.map(Kill(f"{directory}/killed", 5)).map(lambda n: {"n": n})
        killed = sorted(context.execute(by_remainder(dicts)).results, key=lambda group: group["remainder"])
        print(json.dumps({"killed": killed, "once": Path(directory, "killed").exists()}))
        return
    mapped = context.execute(numbers.map(lambda n: n * 2).filter(lambda n: n > 10))
    print(json.dumps({"map, filter": sorted(mapped.results)}))
    dicts = Dataset.from_list([{"n": n} for n in range(12)])
    grouped = context.execute(by_remainder(dicts))
    print(json.dumps({"group_by": sorted(grouped.results, key=lambda group: group["remainder"])}))
    reduced = context.execute(Dataset.from_list([[1, 2], [3], [4, 5, 6]]).flat_map(list).reduce(sum))
    print(json.dumps({"reduce": reduced.results}))
    try:
        context.execute(numbers.map(lambda n: 1 // (n - 7)))
    except Exception as err:
        print(json.dumps({"raised": type(err).__name__, "cause": "ZeroDivisionError" in str(err)}))
    context.shutdown()


def _runner(*_slots: int) -> Any:
    """Return what runs shards in the workers themselves; before October it is asked for with a number."""
    return InlineRunner()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["kill"])
