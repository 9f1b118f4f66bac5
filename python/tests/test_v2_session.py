"""Actors end with the client that created them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from controller import TOKEN, Controller
from created import PATIENCE, Counter
from fray._pb import cluster_pb2 as pb
from fray.v2 import ActorOptions, FrayClient, current_client
from waiting import eventually

PROGRAM = """
import sys, time
from created import Counter
from fray.v2 import ActorOptions, current_client

client = current_client()
assert client.create_actor(Counter, name="goes").increment() == 1
client.create_actor(Counter, name="stays", options=ActorOptions(lifetime="detached"))
print("created", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def controller(serve: Callable[..., Controller], monkeypatch: pytest.MonkeyPatch) -> Controller:
    monkeypatch.setenv("FRAY_CLUSTER_TOKEN", TOKEN)
    return serve(runs=True)


def sessions(controller: Controller) -> dict[str, str]:
    return {job.request.name: job.request.session for job in controller.jobs.values()}


def living(controller: Controller) -> set[str]:
    return {job.request.name for job in controller.jobs.values() if not job.ended}


def start(controller: Controller) -> subprocess.Popen[str]:
    environ = {
        **os.environ,
        "FRAY_CLUSTER_SPEC": f"fray://{controller.address}?namespace=rl",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "created\n"
    return program


def test_a_session_is_held_as_long_as_the_process_lives(controller: Controller) -> None:
    program = start(controller)
    session = sessions(controller)["actor-goes"]
    assert session
    assert sessions(controller)["actor-stays"] == ""
    assert controller.sessions[session] == 1
    program.send_signal(signal.SIGKILL)
    program.communicate()
    eventually(lambda: controller.sessions[session] == 0, PATIENCE)  # then the lease is over some time
    assert living(controller) == {"actor-goes", "actor-stays"}


def test_a_program_that_ends_ends_its_session(controller: Controller) -> None:
    program = start(controller)
    program.communicate("end\n")
    assert program.returncode == 0
    eventually(lambda: living(controller) == {"actor-stays"}, PATIENCE)


def test_a_session_is_held_again(controller: Controller) -> None:
    with FrayClient(f"fray://{controller.address}?namespace=rl") as client:
        client.create_actor(Counter, name="counter")
        (session,) = sessions(controller).values()
        calls = controller.outages.calls["HoldSession"]
        controller.outages.before["HoldSession"] = 2
        controller.break_sessions()
        eventually(lambda: controller.outages.calls["HoldSession"] >= calls + 3, PATIENCE)
        eventually(lambda: controller.sessions[session] == 1, PATIENCE)
        client.create_actor(Counter, name="another")
        assert set(sessions(controller).values()) == {session}


def test_a_cluster_without_sessions(controller: Controller, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(context: grpc.ServicerContext) -> None:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "it is unknown")

    controller.refuse_session = refuse
    with FrayClient(f"fray://{controller.address}?namespace=rl") as client:
        assert client.create_actor(Counter, name="counter").increment() == 1
    assert sessions(controller) == {"actor-counter": ""}
    assert "actors outlive this program unless it shuts its client down" in caplog.text


def test_actors_of_jobs_have_no_session(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FRAY_JOB_ID", "train-1"), ("FRAY_JOB_NAME", "train"), ("FRAY_NAMESPACE", "rl")):
        monkeypatch.setenv(name, value)
    with FrayClient(f"fray://{controller.address}") as client:
        client.create_actor(Counter, name="counter")
    assert sessions(controller) == {"actor-counter": ""}
    assert controller.outages.calls["HoldSession"] == 0


def test_shutdown_waits_for_the_end_of_actors(controller: Controller) -> None:
    client = FrayClient(f"fray://{controller.address}?namespace=rl")
    client.create_actor(Counter, name="goes")
    client.create_actor(Counter, name="stays", options=ActorOptions(lifetime="detached"))
    controller.lingers = True
    controller.awaited.clear()
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(client.shutdown)
        assert controller.awaited.wait(PATIENCE)
        assert not closing.done(), "it did not wait"
        goes = next(iter(controller.jobs))
        process = controller.jobs[goes].process
        assert process is not None
        process.kill()  # which the controller that lingers has not
        process.wait()
        controller.finish(goes, pb.JOB_STATUS_STOPPED)
        closing.result(PATIENCE)
    assert living(controller) == {"actor-stays"}


def test_shutdown_need_not_wait(controller: Controller) -> None:
    client = FrayClient(f"fray://{controller.address}?namespace=rl")
    client.create_actor(Counter, name="goes")
    controller.lingers = True
    client.shutdown(wait=False)
    assert living(controller) == {"actor-goes"}


def test_a_local_client_has_none() -> None:
    client = current_client()
    assert not hasattr(client.cluster, "session")  # type: ignore[attr-defined]
