"""python -m fray.host as a job of a cluster."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controller import TOKEN, Controller
from fray._pb import cluster_pb2 as pb
from test_host import MODULE, PATIENCE, Host
from waiting import eventually


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    (directory / "rl").mkdir(parents=True)
    (directory / "counting.py").write_text(MODULE)
    (directory / "broken.py").write_text("import no_such_module")
    (directory / "raising.py").write_text("raise OSError('the disk is gone')")
    (directory / "rl" / "__init__.py").touch()
    (directory / "rl" / "curriculum.py").write_text("class Curriculum: pass")
    return directory


@pytest.fixture
def start(project: Path) -> Iterator[Callable[..., Host]]:
    started: list[Host] = []

    def start(*words: str, **environ: str) -> Host:
        started.append(Host(project, list(words), environ))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


def in_cluster(controller: Controller, **more: str) -> dict[str, str]:
    info = pb.JobInfo(job_id="counter-1", name="counter", namespace="rl", status=pb.JOB_STATUS_RUNNING)
    info.tasks.add(index=0, state="running")
    controller.jobs["counter-1"] = _job(info)
    return {
        "FRAY_CLUSTER_SPEC": f"fray://{controller.address}",
        "FRAY_CLUSTER_TOKEN": TOKEN,
        "FRAY_NAMESPACE": "rl",
        "FRAY_JOB_ID": "counter-1",
        "FRAY_ACTOR_NAMES": '["counter", "counter_0"]',
        **more,
    }


def _job(info: pb.JobInfo) -> Any:
    from controller import Job

    return Job(info, pb.JobRequest(name="counter", namespace="rl"))


def names(controller: Controller) -> list[str]:
    return sorted(endpoint.name for endpoint in controller.endpoints.values())


def test_it_registers_and_unregisters(start: Callable[..., Host], controller: Controller) -> None:
    controller.outages.before["Register"] = 2  # a controller leads and does not answer: it is tried again
    running = start("counting:Counter", **in_cluster(controller))
    eventually(lambda: names(controller) == ["counter", "counter_0"], PATIENCE)
    assert controller.outages.calls["Register"] == 4
    eventually(lambda: running.ready() == 200, PATIENCE)
    endpoint = next(iter(controller.endpoints.values()))
    assert (endpoint.address, endpoint.namespace) == (f"127.0.0.1:{running.port}", "rl")
    assert endpoint.metadata["class"] == "counting.Counter"
    running.process.terminate()
    assert running.ended()[0] == 0
    assert names(controller) == []


def test_it_is_not_ready_before_it_is_registered(start: Callable[..., Host], controller: Controller) -> None:
    controller.outages.before["Register"] = 1 << 30
    running = start("counting:Counter", **in_cluster(controller))
    eventually(lambda: controller.outages.calls["Register"] > 2, PATIENCE)
    assert running.ready() == 503
    controller.outages.before["Register"] = 0
    eventually(lambda: running.ready() == 200, PATIENCE)
    running.process.terminate()
    assert running.ended()[0] == 0


def test_while_no_controller_leads_it_serves(start: Callable[..., Host], controller: Controller) -> None:
    controller.outages.leaderless = True
    running = start("counting:Counter", **in_cluster(controller))
    assert running.actor().increment() == 1
    eventually(lambda: running.ready() == 200, PATIENCE)
    assert names(controller) == []
    controller.outages.leaderless = False
    eventually(lambda: names(controller) == ["counter", "counter_0"], PATIENCE)
    assert running.actor().increment() == 2
    running.process.terminate()
    assert running.ended()[0] == 0
    assert names(controller) == []


def test_it_stops_while_no_controller_leads(start: Callable[..., Host], controller: Controller) -> None:
    controller.outages.leaderless = True
    running = start("counting:Counter", **in_cluster(controller))
    eventually(lambda: running.ready() == 200, PATIENCE)
    running.process.terminate()
    assert running.ended()[0] == 0


@pytest.mark.parametrize("late", [False, True])
def test_registering_that_is_rejected(start: Callable[..., Host], controller: Controller, late: bool) -> None:
    environ = in_cluster(controller)
    controller.outages.leaderless = late
    if not late:
        del controller.jobs["counter-1"]
    running = start("counting:Counter", **environ)
    if late:  # what is found out when a controller leads
        eventually(lambda: running.ready() == 200, PATIENCE)
        del controller.jobs["counter-1"]
        controller.outages.leaderless = False
    status, log = running.ended()
    assert status == 1
    assert 'fray: the actor cannot be registered: there is no job "counter-1"' in log


def test_a_port_that_is_taken(start: Callable[..., Host]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        status, log = start("counting:Counter", FRAY_PORT_ACTOR=str(taken.getsockname()[1])).ended()
    assert status == 1
    assert "fray: the actor cannot be served: " in log


def test_a_host_imports_only_what_it_needs() -> None:
    """grpc is for registering, asyncio for asynchronous methods, difflib for mistakes."""
    program = """
import sys
import fray.host, fray._host_serve, fray.rpc.handle
needless = [name for name in ("asyncio", "difflib", "grpc", "numpy", "subprocess") if name in sys.modules]
assert not needless, needless
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
