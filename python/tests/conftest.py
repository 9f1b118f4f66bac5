from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from actors import Caller
from controller import TOKEN, Controller
from fray.cluster import FrayCluster, LocalCluster
from fray.rpc import ActorServer

if TYPE_CHECKING:
    from test_rpc_server import Counter


@pytest.fixture(autouse=True)
def _no_fray_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("FRAY_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program fray, of this tree unless FRAY_TEST_PROGRAM names one."""
    if given := os.environ.get("FRAY_TEST_PROGRAM"):
        return Path(given)
    built = tmp_path_factory.mktemp("fray") / "fray"
    environ = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -tags=disable_grpc_modules", **os.environ}
    top = Path(__file__).parents[2]
    subprocess.run(["go", "build", "-o", built, "./cmd/fray"], cwd=top, env=environ, check=True)
    return built


@pytest.fixture(params=["threads", "processes"])
def local(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """A LocalCluster of either kind."""
    with LocalCluster(use_processes=request.param == "processes") as cluster:
        yield cluster


@pytest.fixture
def server() -> Iterator[ActorServer]:
    """A server of actors in a LocalCluster."""
    with LocalCluster() as cluster, ActorServer(cluster) as server:
        yield server


@pytest.fixture
def counter(server: ActorServer) -> Counter:
    """What `server` serves as "counter"."""
    from test_rpc_server import Counter

    value = Counter()
    server.register("counter", value)
    return value


@pytest.fixture
def caller(server: ActorServer) -> Iterator[Caller]:
    """Who calls `server` by the protocol."""
    with Caller(server.address) as one:
        yield one


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
    cluster = FrayCluster(controller.address, namespace="rl", token=TOKEN, timeout=300)
    yield cluster
    cluster.close()
