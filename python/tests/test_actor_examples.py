"""The programs in examples/actors, on this machine: threads with actors of this process, and processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / "examples" / "actors" / "programs"
IN_PROCESSES = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
import fray.cluster.current
from fray.cluster import LocalCluster
fray.cluster.current.LocalCluster = lambda: LocalCluster(use_processes=True)
importlib.import_module(sys.argv[2]).main()
"""


def run(name: str, directory: Path, processes: bool = False) -> str:
    words = ["-c", IN_PROCESSES, str(PROGRAMS), name] if processes else [str(PROGRAMS / f"{name}.py")]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(directory)}
    done = subprocess.run(
        [sys.executable, *words],
        env=environ,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_speller_and_its_counter_call_each_other(tmp_path: Path) -> None:
    output = run("speller", tmp_path)
    assert "42 in words: forty-two" in output
    assert "ValueError: -1 is negative" in output
    assert "'calls': 60, 'returned': 60, 'maybe': 0, 'restarts': 0, 'since': 60, 'value': 202" in output


def test_the_pool_classifies_points(tmp_path: Path) -> None:
    found = re.search(r"'points': (\d+), 'accuracy': ([\d.]+), 'servers': (\d+)", run("inference", tmp_path))
    assert found is not None
    assert (found[1], found[3]) == ("2000", "3")
    assert float(found[2]) > 0.98


@pytest.mark.parametrize("processes", [False, True])
def test_the_policy_learns(tmp_path: Path, processes: bool) -> None:
    result = json.loads(run("rl", tmp_path, processes).splitlines()[-1])
    assert result["untrained"] < 0.4
    assert result["reward"] >= 0.9
    assert result["lesson"] == "hard"


@pytest.mark.parametrize("processes", [False, True])
def test_slices_train_together(tmp_path: Path, processes: bool) -> None:
    output = run("multislice", tmp_path, processes)
    assert "'steps': 300" in output
    found = re.search(r"'loss': ([\d.e-]+), 'untrained': ([\d.]+), 'accuracy': ([\d.]+)", output)
    assert found is not None, output
    assert float(found[1]) < 0.1 < 1 < float(found[2])
    assert float(found[3]) > 0.98
