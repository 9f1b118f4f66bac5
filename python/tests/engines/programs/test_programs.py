"""The programs of examples, on each backend: one variable is changed, and what they print stays the same."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engines.conftest import PROGRAM, Run, environ_without_fray, run

EXAMPLES = Path(__file__).parents[4] / "examples"

CLIENT = ("training", "processing", "rl", "inference")
CLUSTER = ("training", "processing", "rl", "inference", "multislice")


@pytest.fixture(scope="module")
def local() -> Run:
    """Return what runs a program on a LocalClient."""
    return lambda words, cwd, environ: run(words, cwd, environ_without_fray(**environ))


@pytest.fixture(scope="module")
def fray(stack: Any) -> Run:
    """Return what runs a program on a fray cluster."""
    of_stack: Run = stack.run
    return of_stack


@pytest.fixture(scope="module")
def ray(on_ray: Run) -> Run:
    """Return what runs a program on Ray."""
    return on_ray


@pytest.fixture(scope="module")
def iris(on_iris: Run) -> Run:
    """Return what runs a program on Iris."""
    return on_iris


def _printed(backend: Run, program: Path, cwd: Path, start: str) -> str:
    """Run a program, and return the last line that it prints with that start."""
    cwd.mkdir(exist_ok=True)
    done = backend([sys.executable, str(program)], cwd, {"TMPDIR": str(cwd)})
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
    return [line for line in done.stdout.splitlines() if line.startswith(start)][-1]


@cache
def _expected(program: str, cwd: Path) -> str:
    """Return what a program prints on a LocalClient."""
    return _printed(
        lambda words, cwd, environ: run(words, cwd, environ_without_fray(**environ)),
        EXAMPLES / "client" / f"{program}.py",
        cwd,
        "result: ",
    )


def test_no_backend_is_left_out() -> None:
    """What is not installed would be skipped, and the programs compared with fewer backends."""
    assert importlib.util.find_spec("ray")
    assert importlib.util.find_spec("iris")
    assert shutil.which(PROGRAM)


@pytest.mark.parametrize("program", CLIENT)
@pytest.mark.parametrize("backend", ["fray", "ray", "iris"])
def test_programs_of_clients(
    backend: str, program: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    of_backend = request.getfixturevalue(backend)
    base = tmp_path_factory.getbasetemp()
    expected = _expected(program, base / f"local-{program}")
    printed = _printed(
        of_backend, EXAMPLES / "client" / f"{program}.py", tmp_path_factory.mktemp(program), "result: "
    )
    assert printed == expected


@pytest.mark.parametrize("program", CLUSTER)
@pytest.mark.parametrize("backend", ["local", "fray"])
def test_programs_of_clusters(
    backend: str, program: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    want = {
        "training": "Training completed with status: succeeded",
        "processing": "wrote 6 files",
        "inference": "['Response to: Hello, world!', 'Response to: What is the capital of France?']",
        "rl": "arm 1 pays most",
        "multislice": "",
    }[program]
    printed = _printed(
        request.getfixturevalue(backend), EXAMPLES / "cluster" / f"{program}.py", tmp_path, want
    )
    assert want or "steps on" in printed
