"""The programs of examples, on each backend: one variable is changed, and what they print stays the same."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[4] / "examples"
ENGINES = Path(__file__).parents[1]
WAIT = 300.0  # seconds; a busy machine keeps this

Run = Callable[[list[str], Path, Mapping[str, str]], "subprocess.CompletedProcess[str]"]

CLIENT = ("training", "processing", "rl", "inference")
CLUSTER = ("training", "processing", "rl", "inference", "multislice")


def _run(words: list[str], cwd: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=cwd, env=environ, capture_output=True, text=True, timeout=WAIT, check=False
    )


def _environ(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FRAY_")}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), **more}


@pytest.fixture(scope="module")
def local() -> Run:
    """Return what runs a program on a LocalClient."""
    return lambda words, cwd, environ: _run(words, cwd, _environ(**environ))


@pytest.fixture(scope="module")
def fray(stack: Any) -> Run:
    """Return what runs a program on a fray cluster."""
    run: Run = stack.run
    return run


@pytest.fixture(scope="module")
def ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Return what runs a program on a Ray cluster of one node."""
    if not importlib.util.find_spec("ray") or not importlib.util.find_spec("fray.cluster.ray"):
        pytest.skip("Ray is not installed here")
    sys.path.append(str(ENGINES / "ray"))
    nodes = importlib.import_module("ray_cluster").Nodes(tmp_path_factory.mktemp("ray"), {"num_cpus": 2})
    spec = {**nodes.environ, "FRAY_CLIENT_SPEC": f"ray:{nodes.address}"}
    yield lambda words, cwd, environ: _run(words, cwd, _environ(**spec, **environ))
    nodes.close()


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Return what runs a program on an Iris cluster in a process of its own."""
    if not importlib.util.find_spec("iris") or not importlib.util.find_spec("fray.cluster.iris"):
        pytest.skip("Iris is not installed here")
    import json

    server = subprocess.Popen(
        [sys.executable, str(ENGINES / "iris" / "iris_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(tmp_path_factory.mktemp("iris") / "log").open("w"),
        text=True,
        env=_environ(HOME=str(tmp_path_factory.mktemp("home"))),
    )
    assert server.stdin is not None
    assert server.stdout is not None
    url = json.loads(server.stdout.readline())["url"]
    spec = {"FRAY_CLIENT_SPEC": url.replace("http://", "iris://")}
    yield lambda words, cwd, environ: _run(words, cwd, _environ(**spec, **environ))
    server.communicate(timeout=WAIT)


def _printed(run: Run, program: Path, cwd: Path, start: str) -> str:
    """Run a program, and return the last line that it prints with that start."""
    cwd.mkdir(exist_ok=True)
    done = run([sys.executable, str(program)], cwd, {"TMPDIR": str(cwd)})
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
    return [line for line in done.stdout.splitlines() if line.startswith(start)][-1]


@cache
def _expected(program: str, cwd: Path) -> str:
    """Return what a program prints on a LocalClient."""
    return _printed(
        lambda words, cwd, environ: _run(words, cwd, _environ(**environ)),
        EXAMPLES / "client" / f"{program}.py",
        cwd,
        "result: ",
    )


@pytest.mark.parametrize("program", CLIENT)
@pytest.mark.parametrize("backend", ["fray", "ray", "iris"])
def test_programs_of_clients(
    backend: str, program: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = request.getfixturevalue(backend)
    base = tmp_path_factory.getbasetemp()
    expected = _expected(program, base / f"local-{program}")
    printed = _printed(
        run, EXAMPLES / "client" / f"{program}.py", tmp_path_factory.mktemp(program), "result: "
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
