"""N88 with the packages themselves: TensorBoard reads what `fray rl` writes, wandb what its logger posts."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engines.conftest import PROGRAM
from fray.rl import ActivityTrackerProxy
from fray.rl.config import Config
from fray.rl.experiment import WandbLogger
from fray.rpc import FixedResolver

pytestmark = pytest.mark.short


@contextmanager
def tracker(document: Path) -> Iterator[ActivityTrackerProxy]:
    """Host the activity tracker in a process of Go, which is killed in the end."""
    command = [PROGRAM, "rl", "activity_tracker", "--config", str(document)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = process.stderr.readline().rsplit(" at ", 1)[-1].strip()
        yield ActivityTrackerProxy(FixedResolver(address).handle("activity_tracker"))
        process.kill()
        process.stderr.read()


def test_n88_tensorboard_reads_the_event_files(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    document = tmp_path / "run.json"
    document.write_text(json.dumps({"out": str(tmp_path / "out"), "logger": {"backend": ["tensorboard"]}}))
    for steps in (range(3), range(3, 5)):
        with tracker(document) as proxy:
            for step in steps:
                data = {"reward": step / 2, "count": step, "loss": math.nan, "note": "text"}
                proxy.experiment_logger_post("tensorboard", post_id=f"t/{step}", data=data, step=step)
    events = EventAccumulator(str(tmp_path / "out" / "metrics" / "tensorboard"))
    events.Reload()
    assert sorted(events.Tags()["scalars"]) == ["count", "loss", "reward"]
    assert [(event.step, event.value) for event in events.Scalars("reward")] == [
        (step, step / 2) for step in range(5)
    ]
    assert [event.value for event in events.Scalars("count")] == [0, 1, 2, 3, 4]
    assert all(math.isnan(event.value) for event in events.Scalars("loss"))


def test_n88_wandb_has_what_was_posted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    config = {"project_name": "p", "experiment_name": "e", "out": str(tmp_path), "seed": 7}
    logger = WandbLogger(Config(config))
    for step in (1, 2, 1):  # the run goes back
        assert logger.post("wandb", {"data": {"reward": step / 2}, "step": step})
    assert logger.post("wandb", {"title": "done", "content": "all of it"})
    logger.stop()
    (written,) = tmp_path.rglob("*.wandb")
    records = list(records_of(written))
    rows = [row_of(record) for record in records if record.HasField("history")]
    kept = [(row["training/global_step"], row["reward"]) for row in rows]
    assert kept == [(1, 0.5), (2, 1.0), (1, 0.5)]
    (run,) = [record.run for record in records if record.HasField("run")][:1]
    assert (run.project, run.display_name) == ("p", "e")
    (alert,) = [record.alert for record in records if record.HasField("alert")]
    assert (alert.title, alert.text) == ("done", "all of it")


def records_of(path: Path) -> Iterator[Any]:
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore

    store = DataStore()
    store.open_for_scan(str(path))
    while (data := store.scan_data()) is not None:
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        yield record


def row_of(record: Any) -> dict[str, Any]:
    return {
        item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item
    }
