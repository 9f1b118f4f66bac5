"""What tests of several engines have in common: a real fray cluster on this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

PROGRAM = os.environ.get("FRAY_TEST_PROGRAM", "")
"""The fray program, which scripts/test-engines builds."""

WAIT = 900.0  # seconds; a busy machine keeps this


Run = Callable[[list[str], Path, Mapping[str, str]], "subprocess.CompletedProcess[str]"]
"""Runs a program in a directory with these variables."""


class Stack:
    """A stack of its own that is being watched: jobs run as processes of agents of this machine."""

    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        self.directory = directory
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FRAY_")}
        self.environ = {**kept, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path), **environ}
        (directory / "fray.hcl").touch()
        self._log = (directory / "watch.log").open("wb")
        self._watch = subprocess.Popen(
            [PROGRAM, "watch", "--http", "127.0.0.1:0"],
            cwd=directory,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self._watch.stdout is not None
        for line in self._watch.stdout:
            self._log.write(line)
            if line.startswith(b"Page and metrics"):
                break
        else:
            self._log.close()
            raise RuntimeError(f"fray watch ended:\n{(directory / 'watch.log').read_text()}")
        self._copy = threading.Thread(target=shutil.copyfileobj, args=(self._watch.stdout, self._log))
        self._copy.start()

    def run(
        self, words: list[str], cwd: Path, environ: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a program whose FRAY_CLIENT_SPEC names this stack."""
        shell = (
            'FRAY_CLIENT_SPEC=$FRAY_CLUSTER_SPEC; unset FRAY_CLUSTER_SPEC; export FRAY_CLIENT_SPEC; exec "$@"'
        )
        return run(
            [PROGRAM, "run", "-C", str(self.directory), "--", "sh", "-c", shell, "sh", *words],
            cwd,
            {**self.environ, **environ},
        )

    def close(self) -> None:
        """End all jobs, and the watch."""
        try:
            run([PROGRAM, "destroy", "--auto-approve"], self.directory, self.environ).check_returncode()
        finally:
            self._watch.send_signal(signal.SIGINT)
            self._watch.wait(WAIT)
            self._copy.join()
            assert self._watch.stdout is not None
            self._watch.stdout.close()
            self._log.close()


def run(words: list[str], cwd: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(
        words, cwd=cwd, env=environ, capture_output=True, text=True, timeout=WAIT, check=False
    )


def environ_without_fray(**more: str) -> dict[str, str]:
    """Return the variables of a program that imports fray as this one does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FRAY_")}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), **more}


def _runs_with(spec: Mapping[str, str]) -> Run:
    return lambda words, cwd, environ: run(words, cwd, environ_without_fray(**spec, **environ))


@pytest.fixture(scope="session")
def on_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Return what runs a program on a Ray cluster of one node."""
    if not importlib.util.find_spec("ray"):
        pytest.skip("Ray is not installed here")
    from engines.ray.ray_cluster import Nodes

    nodes = Nodes(tmp_path_factory.mktemp("ray"), {"num_cpus": 2})
    yield _runs_with({**nodes.environ, "FRAY_CLIENT_SPEC": f"ray:{nodes.address}"})
    nodes.close()


@pytest.fixture(scope="session")
def on_iris(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Return what runs a program on an Iris of its own."""
    if not importlib.util.find_spec("iris"):
        pytest.skip("Iris is not installed here")
    from iris_process import Iris

    server = Iris(tmp_path_factory.mktemp("iris"))
    yield _runs_with({"FRAY_CLIENT_SPEC": server.url.replace("http://", "iris://")})
    server.close()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a stack that is being watched."""
    if not PROGRAM or not shutil.which(PROGRAM):
        pytest.skip("FRAY_TEST_PROGRAM does not name the fray program; scripts/test-engines builds it")
    made = Stack(tmp_path_factory.mktemp("stack"), {})
    yield made
    made.close()
