"""Concurrency groups of actors that were created from code, and actors that can never be registered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller import TOKEN, Controller
from created import PATIENCE, Counter, Grouped, make_grouped
from fray.cluster import JobStatus, LocalCluster
from fray.v2 import ActorCreationError, ActorOptions, Client, FrayClient, LocalClient
from fray.v2.client import _ClusterClient
from test_v2_actors import Elsewhere

GROUPS = ActorOptions(concurrency_groups={"io": 2})


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


def test_groups_run_beside_each_other(client: Client, tmp_path: Path) -> None:
    grouped = client.create_actor(Grouped, name="grouped", options=GROUPS)
    calls = [grouped.meet.remote(str(tmp_path), 3)]
    calls += [grouped.meet_within.remote(str(tmp_path), 3) for _ in range(2)]
    assert all(call.result(PATIENCE) for call in calls), "not all three ran at a time"


def test_a_group_that_is_lacking_is_found_before_anything_starts(client: Client) -> None:
    for options in (ActorOptions(), ActorOptions(concurrency_groups={"oi": 1})):
        with pytest.raises(ActorCreationError, match=r'Grouped.meet_within is of group "io", which'):
            client.create_actor(Grouped, name="grouped", options=options)
    assert client.cluster.list_jobs() == []  # type: ignore[attr-defined]


def test_a_group_that_is_lacking_ends_the_job(client: Client) -> None:
    with pytest.raises(ActorCreationError, match=r'Grouped.meet_within is of group "io", which'):
        client.create_actor(make_grouped, name="grouped")  # whose methods are known once it is made
    assert client.create_actor(make_grouped, name="grouped", options=GROUPS).name == "grouped"


@pytest.mark.parametrize("name", ["no spaces", "", ".x", "a//b", "a.job.b", "x" * 196])
def test_a_bad_name(client: Client, name: str) -> None:
    with pytest.raises(ActorCreationError, match=r"is no name|kind"):
        client.create_actor(Counter, name=name)
    with pytest.raises(ActorCreationError, match=r"is no name|kind"):
        client.create_actor_group(Counter, name=name, count=1)
    assert client.cluster.list_jobs() == []  # type: ignore[attr-defined]


def test_a_class_without_methods(client: Client) -> None:
    class Mute:
        pass

    with pytest.raises(ActorCreationError, match=r"Mute has no method that can be called"):
        client.create_actor(Mute, name="mute")


def test_what_can_never_be_registered_is_tried_once() -> None:
    with LocalCluster(use_processes=True) as cluster:
        client = _ClusterClient(Elsewhere(cluster))
        group = client.create_actor_group(make_grouped, name="grouped", count=1)
        assert group.jobs[0].wait(PATIENCE, raise_on_failure=False) is JobStatus.FAILED
        job = cluster.poll(group.jobs[0].job_id)  # type: ignore[arg-type]
        assert (job.attempt, job.failures) == (1, 1)
        end = job.tasks[0].termination
        assert end is not None
        assert "which concurrency_groups lacks" in end.message
