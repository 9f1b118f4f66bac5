"""One real Iris for all tests, of the release that the running Python has, or that FRAY_IRIS_PYTHON has.

Callables are pickled for the same version of Python, so that the tests of a release run with a Python of its
version.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fray.cluster.errors import UnsupportedError
from fray.cluster.iris import IrisCluster, spec
from fray.cluster.iris.connection import Connection
from fray.v2.iris_backend import FrayIrisClient

PYTHON = os.environ.get("FRAY_IRIS_PYTHON", sys.executable)
_PROBE = "import sys, iris, finelog_server; print(sys.version_info[:2] == tuple(map(int, sys.argv[1].split('.'))))"
_users = itertools.count()


class Iris:
    """A controller with workers, in a process of its own."""

    def __init__(self, home: Path) -> None:
        environ = {**os.environ, "HOME": str(home), "PYTHONPATH": ""}
        self._log = (home / "iris.log").open("w")
        self._process = subprocess.Popen(
            [PYTHON, str(Path(__file__).with_name("iris_server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environ,
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        if not first:
            raise RuntimeError(f"Iris did not start:\n{(home / 'iris.log').read_text()[-4000:]}")
        about = json.loads(first)
        self.url: str = about["url"]
        self.version: str = about["version"]

    @property
    def is_june(self) -> bool:
        """Whether it is of June 2026."""
        return self.version.startswith("0.2.20.")

    def ask(self, op: str, **arguments: object) -> Any:
        """Have the process do something, see iris_server."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer
        return answer["ok"]

    def preempt(self, task: str) -> None:
        """Take a task its place; by KickTasks where the release has it."""
        body = {"targets": [task], "desiredState": "TASK_STATE_PREEMPTED", "reason": "a test"}
        try:
            results = self.call("KickTasks", body)["results"]
            assert all(result["queued"] for result in results), results
        except UnsupportedError:
            self.ask("preempt", task=task)

    def call(self, method: str, body: Mapping[str, Any]) -> Any:
        """Call the controller."""
        connection = Connection(spec.of_address(self.url), 10)
        try:
            return connection.call(method, body)
        finally:
            connection.close()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()


@pytest.fixture(scope="session")
def iris(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iris]:
    """Return a real Iris; without one the test is skipped."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = subprocess.run([PYTHON, "-c", _PROBE, version], capture_output=True, text=True, check=False)
    if found.stdout.strip() != "True":
        pytest.skip(f"{PYTHON} has no marin-iris[controller] for Python {version}; set FRAY_IRIS_PYTHON to one")
    server = Iris(tmp_path_factory.mktemp("iris"))
    yield server
    server.close()


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a user whom no other test has."""
    for name in ("FRAY_CLIENT_SPEC", "FRAY_CLUSTER_SPEC", "FRAY_NAMESPACE", "FRAY_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    name = f"user{next(_users)}"
    monkeypatch.setenv("IRIS_USER", name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)  # no project
    return name


@pytest.fixture
def cluster(iris: Iris, user: str) -> Iterator[IrisCluster]:
    """Return a cluster for the user; what it launched is ended afterwards."""
    found = IrisCluster(iris.url, user=user)
    yield found
    for job in found.list_jobs():
        if not job.status.ended:
            found.terminate(job.job_id)
    found.close()


@pytest.fixture
def client(cluster: IrisCluster, iris: Iris) -> FrayIrisClient:
    """Return a client for the user."""
    made = FrayIrisClient(iris.url)
    made.cluster = cluster
    return made


@pytest.fixture
def flag(tmp_path: Path) -> Callable[[str], Path]:
    """Return what makes the path of a file by which a test and a task tell each other something."""
    return lambda name: tmp_path / name
