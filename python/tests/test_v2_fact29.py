"""How often an actor with a process of its own is started again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller import TOKEN, Controller
from created import PATIENCE, Counter
from fray.cluster import (
    ActorNotFoundError,
    JobStatus,
    LocalCluster,
)
from fray.rpc import errors
from fray.v2 import (
    ActorOptions,
    ActorStatus,
    Client,
    FrayClient,
    LocalClient,
)
from fray.v2.client import _ClusterClient
from test_v2_actors import Elsewhere
from waiting import eventually


@pytest.fixture(params=["threads", "processes", "fray"])
def client(
    request: pytest.FixtureRequest,
    serve: Callable[..., Controller],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Client]:
    if request.param == "threads":
        with LocalClient() as local:
            yield local
    elif request.param == "processes":
        with LocalCluster(use_processes=True) as cluster, _ClusterClient(Elsewhere(cluster)) as elsewhere:
            yield elsewhere
    else:
        monkeypatch.setenv("FRAY_CLUSTER_TOKEN", TOKEN)
        with FrayClient(f"fray://{serve(runs=True).address}?namespace=rl") as remote:
            yield remote


@pytest.fixture
def machine() -> Iterator[tuple[LocalCluster, Client]]:
    """A machine whose actors are processes, and a client of it."""
    with LocalCluster(use_processes=True) as cluster, _ClusterClient(Elsewhere(cluster)) as client:
        yield cluster, client


@pytest.mark.parametrize("restarts", [0, 1, 2])
def test_fact_29_max_restarts_means_exactly_that(machine: tuple[LocalCluster, Client], restarts: int) -> None:
    cluster, client = machine
    counter = client.create_actor(Counter, name="counter", options=ActorOptions(max_restarts=restarts))
    for attempt in range(restarts + 1):
        assert counter.increment() == 1  # 24: state is reset
        pid = counter.pid()
        with pytest.raises(errors.MaybeExecutedError) as caught:
            counter.exit(3)
        assert isinstance(caught.value, errors.ActorDeadError) == (attempt == restarts), (
            "only the last is final"
        )
        eventually(lambda: not Path(f"/proc/{pid}").exists() or os.name != "posix", PATIENCE)  # noqa: B023
    eventually(lambda: client.actor_status("counter") is ActorStatus.FAILED, PATIENCE)
    (job,) = cluster.list_jobs()
    assert (job.status, job.attempt, job.failures) == (JobStatus.FAILED, restarts + 1, restarts + 1)


def test_fact_29_without_end(machine: tuple[LocalCluster, Client]) -> None:
    cluster, client = machine
    counter = client.create_actor(Counter, name="counter")
    for _ in range(3):
        with pytest.raises(errors.MaybeExecutedError):
            counter.exit(3)
        assert counter.increment() == 1
    cluster.preempt(cluster.list_jobs()[0].job_id)
    eventually(lambda: cluster.list_jobs()[0].preemptions == 1, PATIENCE)
    assert counter.increment() in (1, 2)


def test_fact_29_preemptions_do_not_count(machine: tuple[LocalCluster, Client]) -> None:
    cluster, client = machine
    counter = client.create_actor(Counter, name="counter", options=ActorOptions(max_restarts=0))
    for n in range(2):
        assert counter.increment() == 1
        cluster.preempt(cluster.list_jobs()[0].job_id)
        eventually(lambda: cluster.list_jobs()[0].attempt == n + 2, PATIENCE)  # noqa: B023
    assert counter.increment() == 1
    assert cluster.list_jobs()[0].status is JobStatus.RUNNING


def test_fact_29_a_clean_exit_is_the_end(machine: tuple[LocalCluster, Client]) -> None:
    cluster, client = machine
    counter = client.create_actor(Counter, name="counter")
    with pytest.raises(errors.ActorDiedError, match=r'"counter" has ended: .*; the call may have run'):
        counter.exit(0)
    with pytest.raises(errors.ActorDeadError, match=r'"counter" has ended: job .* exited with status 0'):
        counter.increment()
    with pytest.raises(ActorNotFoundError, match="has ended"):
        client.actor_status("counter")
    assert cluster.list_jobs()[0].status is JobStatus.SUCCEEDED


def test_restarting_is_a_status(machine: tuple[LocalCluster, Client], tmp_path: Path) -> None:
    _, client = machine
    gate = tmp_path / "gate"
    gate.touch()
    counter = client.create_actor(Counter, gate=str(gate), name="counter")
    gate.unlink()
    with pytest.raises(errors.MaybeExecutedError):
        counter.exit(3)
    eventually(lambda: client.actor_status("counter") is ActorStatus.RESTARTING, PATIENCE)
    gate.touch()
    assert counter.increment() == 1
    assert client.actor_status("counter") is ActorStatus.READY
