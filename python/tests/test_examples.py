"""The programs in examples/cluster, on each kind of cluster that can be had here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from controller import TOKEN, Controller

EXAMPLES = Path(__file__).parents[2] / "examples" / "cluster"
CLIENT = EXAMPLES.parent / "client"
RUN_LOCALLY = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
from fray.cluster import LocalCluster
import fray.cluster.current
fray.cluster.current.LocalCluster = lambda: LocalCluster(use_processes=True)
program = importlib.import_module(sys.argv[2])
program.main() if hasattr(program, "main") else program.launch_training("a")
"""


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("training", "Training completed with status: succeeded"),
        ("processing", "wrote 6 files"),
        ("inference", "['Response to: Hello, world!', 'Response to: What is the capital of France?']"),
        ("rl", "arm 1 pays most"),
        ("multislice", "steps on 3 slices"),
    ],
)
@pytest.mark.parametrize("where", ["threads", "processes", "fray"])
def test_programs_run(
    serve: Callable[..., Controller], tmp_path: Path, name: str, want: str, where: str
) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    program = str(EXAMPLES / f"{name}.py")
    match where:
        case "threads":
            words = [program]
        case "processes":
            words = ["-c", RUN_LOCALLY, str(EXAMPLES), name]
        case _:
            words = [program]
            environ["FRAY_CLUSTER_SPEC"] = f"fray://{serve(runs=True).address}?namespace=rl"
            environ["FRAY_CLUSTER_TOKEN"] = TOKEN
    done = subprocess.run(
        [sys.executable, *words],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert want in done.stdout


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("training", "result: training succeeded: [{'slope': 3.0, 'offset': -1.0}, "),
        ("processing", "result: 120 documents, 2880 words, 8 tries"),
        ("rl", "result: arm 1 pays most; weights ["),
        ("inference", """result: ["llama on 'Hello, world!'", """),
    ],
)
def test_programs_of_clients_run(tmp_path: Path, name: str, want: str) -> None:
    """The others are compared with this, by scripts/test-engines."""
    done = _run_client(tmp_path, name, {})
    assert done.returncode == 0, done.stdout + done.stderr
    assert want in done.stdout


def test_a_program_of_clients_elsewhere(serve: Callable[..., Controller], tmp_path: Path) -> None:
    spec = f"fray://{serve(runs=True).address}?namespace=rl"
    done = _run_client(tmp_path, "inference", {"FRAY_CLIENT_SPEC": spec, "FRAY_CLUSTER_TOKEN": TOKEN})
    assert done.returncode == 0, done.stdout + done.stderr
    assert """result: ["llama on 'Hello, world!'", """ in done.stdout


def _run_client(tmp_path: Path, name: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path), **variables}
    return subprocess.run(
        [sys.executable, str(CLIENT / f"{name}.py")],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
