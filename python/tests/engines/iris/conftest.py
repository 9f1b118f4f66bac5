"""One real Iris for all tests, of the release that the running Python has, or that FRAY_IRIS_PYTHON has.

Callables are pickled for the same version of Python, so that the tests of a release run with a Python of its
version.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fray.cluster.iris import IrisCluster
from fray.v2.iris_backend import FrayIrisClient
from iris_process import PYTHON, Iris

_PROBE = (
    "import sys, iris, finelog_server; print(sys.version_info[:2] == tuple(map(int, sys.argv[1].split('.'))))"
)
_users = itertools.count()


@pytest.fixture(scope="session")
def iris(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iris]:
    """Return a real Iris; without one the test is skipped."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = subprocess.run([PYTHON, "-c", _PROBE, version], capture_output=True, text=True, check=False)
    if found.stdout.strip() != "True":
        pytest.skip(
            f"{PYTHON} has no marin-iris[controller] for Python {version}; set FRAY_IRIS_PYTHON to one"
        )
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
