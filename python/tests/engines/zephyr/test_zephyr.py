"""Pipelines of the real marin-zephyr, which imports marin-fray's names from this package."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from engines.conftest import Run, Stack

PROGRAM = Path(__file__).with_name("pipelines.py")
WAIT = 900.0  # seconds; a busy machine keeps this
WANT = {
    "map, filter": [12, 14, 16, 18, 20, 22],
    "group_by": [{"remainder": 0, "sum": 18}, {"remainder": 1, "sum": 22}, {"remainder": 2, "sum": 26}],
    "reduce": [21],
    "raised": "ZephyrWorkerError",
    "cause": True,
}


def _printed(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
    found: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            found.update(json.loads(line))
    return found


def test_zephyr_runs_without_marin_fray() -> None:
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.distribution("marin-fray")
    import fray.client

    assert fray.__fray_ml__


@pytest.mark.short
def test_zephyr_pipelines_in_this_process(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MARIN_PREFIX": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert _printed(done) == {"cluster": "LocalCluster", **WANT}


def test_zephyr_pipelines_on_fray(stack: Stack, tmp_path: Path) -> None:
    done = stack.run([sys.executable, str(PROGRAM), str(tmp_path)], tmp_path, {"MARIN_PREFIX": str(tmp_path)})
    assert _printed(done) == {"cluster": "FrayCluster", **WANT}


@pytest.mark.parametrize(("backend", "cluster"), [("on_ray", "RayCluster"), ("on_iris", "IrisCluster")])
def test_zephyr_pipelines_on_other_engines(
    backend: str, cluster: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    run: Run = request.getfixturevalue(backend)
    done = run([sys.executable, str(PROGRAM), str(tmp_path)], tmp_path, {"MARIN_PREFIX": str(tmp_path)})
    assert _printed(done) == {"cluster": cluster, **WANT}


KILLED = {"killed": WANT["group_by"], "once": True}


def test_zephyr_goes_on_when_a_worker_is_killed(stack: Stack, tmp_path: Path) -> None:
    words = [sys.executable, str(PROGRAM), str(tmp_path), "kill"]
    done = stack.run(words, tmp_path, {"MARIN_PREFIX": str(tmp_path)})
    assert _printed(done) == {"cluster": "FrayCluster", **KILLED}


@pytest.mark.parametrize(("backend", "cluster"), [("on_ray", "RayCluster"), ("on_iris", "IrisCluster")])
def test_zephyr_goes_on_when_a_worker_of_another_engine_is_killed(
    backend: str, cluster: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    run: Run = request.getfixturevalue(backend)
    words = [sys.executable, str(PROGRAM), str(tmp_path), "kill"]
    assert _printed(run(words, tmp_path, {"MARIN_PREFIX": str(tmp_path)})) == {"cluster": cluster, **KILLED}
