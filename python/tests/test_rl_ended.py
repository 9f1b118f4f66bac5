"""Processes that are started after the end of their run, or whose controller is gone then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors import PATIENCE
from fray.cluster import LocalCluster
from fray.rl.__main__ import main
from fray.rl.config import Config, ConfigError
from fray.rl.ended import End, end_of
from fray.rl.hosting import Hosting, places_of
from rl_run import Run
from test_rl_hosting import BASE


@pytest.fixture
def run() -> Iterator[Run]:
    with LocalCluster() as cluster:
        made = Run(cluster)
        yield made
        made.server.shutdown()


def record(out: Path, run: str, **more: Any) -> None:
    out.mkdir(exist_ok=True)
    content = {"run": run, "exit": 0, "reason": "finished: 60 steps", "step": 60, **more}
    (out / "new").write_text(json.dumps(content))
    (out / "new").replace(out / "ended.json")


def test_the_end_is_of_one_run(tmp_path: Path) -> None:
    config = Config({"out": str(tmp_path), "run": "a"})
    assert end_of(config) is None
    record(tmp_path, "b", exit=1)
    assert end_of(config) is None
    assert end_of(config, "b") == End("finished: 60 steps", failed=True, step=60)
    record(tmp_path, "a")
    assert end_of(config) == End("finished: 60 steps", failed=False, step=60)
    assert end_of(Config({"out": str(tmp_path)})) is None  # it does not know its run yet
    assert end_of(Config({"run": "a"})) is None
    (tmp_path / "ended.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"ended\.json cannot be read: .* has not ended, remove"):
        end_of(config)


def test_a_process_that_is_started_after_the_end_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, "a", exit=1, reason="error: no reward")
    (tmp_path / "run.json").write_text(json.dumps({**BASE, "out": str(tmp_path), "run": "a"}))
    assert main(["rollout_worker", "--config", str(tmp_path / "run.json")]) == 0
    assert "the run has ended before: error: no reward" in capsys.readouterr().err


@pytest.mark.parametrize("known", [True, False])
def test_a_process_finds_the_end_without_the_controller(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """It knows its run by the configuration, or by what the controller has answered before it was gone."""
    from fray.rl import hosting

    class Controller:
        def __init__(self) -> None:
            self.asked = threading.Event()

        def wait_ended(self, seconds: float) -> dict[str, Any]:
            del seconds
            self.asked.set()
            return {"run": "a", "ended": False}

    monkeypatch.setattr(hosting, "_LONGEST_PAUSE", 0.1)
    monkeypatch.setattr(hosting, "RESOLVE_TIMEOUT", 0.1)
    record(tmp_path, "before")
    config = Config({**BASE, "out": str(tmp_path), **({"run": "a"} if known else {})})
    hosted = Hosting(config, places_of(["algorithm_processor"], config), run.cluster)
    waiting = threading.Thread(target=hosted.wait)
    waiting.start()
    if not known:
        controller = Controller()
        run.server.register("controller", controller, max_concurrency=4)
        assert controller.asked.wait(PATIENCE)
        assert not hosted.has_ended
        run.server.unregister("controller")
    record(tmp_path, "a")
    waiting.join(PATIENCE)
    assert not waiting.is_alive()
    assert hosted.has_ended


def test_a_configuration_that_cannot_be_used_ends_the_job(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({**BASE, "rollout_worker": {"type": "absent:Worker"}}))
    ended = tmp_path / "end"
    done = subprocess.run(
        [sys.executable, "-m", "fray.rl", "rollout_worker", "--config", str(tmp_path / "run.json")],
        env={**os.environ, "FRAY_TERMINATION_FILE": str(ended)},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "cannot be imported" in done.stderr
    written = json.loads(ended.read_text())
    assert written["cause"] == "final"
    assert written["message"].startswith('rollout_worker.type: "absent:Worker" cannot be imported')
