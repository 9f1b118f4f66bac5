from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller import TOKEN, Controller
from fray.cluster import FrayCluster, LocalCluster


@pytest.fixture(autouse=True)
def _no_fray_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("FRAY_")]:
        monkeypatch.delenv(name)


@pytest.fixture(params=["threads", "processes"])
def local(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """A LocalCluster of either kind."""
    with LocalCluster(use_processes=request.param == "processes") as cluster:
        yield cluster


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Controller]]:
    """Start controllers that end with the test."""
    started = []

    def start(runs: bool = False) -> Controller:
        controller = Controller(tmp_path, runs)
        started.append((controller, controller.serve()))
        return controller

    yield start
    for controller, server in started:
        server.stop(None).wait(10)
        controller.end()


@pytest.fixture
def controller(serve: Callable[..., Controller]) -> Controller:
    return serve()


@pytest.fixture
def remote(controller: Controller) -> Iterator[FrayCluster]:
    """A FrayCluster on `controller`."""
    cluster = FrayCluster(controller.address, namespace="rl", token=TOKEN, timeout=10)
    yield cluster
    cluster.close()
