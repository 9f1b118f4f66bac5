"""Groups, reservations and the registry of actors on a LocalCluster."""

from __future__ import annotations

import threading
import time

import pytest

from fray.cluster import (
    ActorChanges,
    ActorNotFoundError,
    AlreadyExistsError,
    InvalidRequestError,
    JobGroupConfig,
    JobId,
    JobRequest,
    JobStatus,
    LocalCluster,
    Metadata,
    Namespace,
    NotFoundError,
    RefusedError,
    ReservationConfig,
    ReservationId,
    ResourceConfig,
    TaskState,
)
from jobs import (
    TPU,
    call,
    config,
    register_and_stay,
    register_late,
    reserve_and_return,
    succeed,
    until_stopped,
    wait_for_it,
    watch_for_ever,
)
from waiting import ended, eventually

GROUP = JobGroupConfig("group", same_region=True)


def test_a_group_starts_together_whatever_its_size() -> None:
    with LocalCluster(max_workers=2) as cluster:
        ids = cluster.launch_group([call(until_stopped, name=f"job-{i}") for i in range(6)], GROUP)
        assert [cluster.poll(job_id).status for job_id in ids] == [JobStatus.RUNNING] * 6
        assert {cluster.poll(job_id).group for job_id in ids} == {"group"}
        later = cluster.launch_group([call(succeed, name="later")], GROUP)
        assert cluster.poll(later[0]).status is JobStatus.PENDING


def test_a_group_waits_until_all_of_it_fits() -> None:
    with LocalCluster(max_workers=3) as cluster:
        first = [cluster.launch(call(until_stopped, name=f"first-{i}")) for i in range(2)]
        group = cluster.launch_group([call(until_stopped, name=f"job-{i}") for i in range(2)], GROUP)
        assert {cluster.poll(job_id).status for job_id in group} == {JobStatus.PENDING}
        cluster.terminate(first[0])
        eventually(lambda: {cluster.poll(job_id).status for job_id in group} == {JobStatus.RUNNING})


@pytest.mark.parametrize(
    ("requests", "error", "message"),
    [
        ([call(succeed, name="a"), call(succeed, name="b b")], InvalidRequestError, r"requests\[1\]\.name"),
        ([call(succeed, name="a"), call(succeed, name="a")], InvalidRequestError, 'is called "a" too'),
        ([], InvalidRequestError, "at least one job"),
        ([call(succeed, name="a"), call(succeed, name="taken")], AlreadyExistsError, "taken"),
        (
            [call(succeed, name="a"), call(succeed, name="b", reservation_id="none")],
            NotFoundError,
            r"requests\[1\]\.reservation_id",
        ),
    ],
)
def test_a_group_that_is_rejected_leaves_nothing_behind(
    local: LocalCluster, requests: list[JobRequest], error: type[Exception], message: str
) -> None:
    local.launch(call(until_stopped, name="taken"))
    with pytest.raises(error, match=message):
        local.launch_group(requests, GROUP)
    assert [job.name for job in local.list_jobs()] == ["taken"]


def test_a_group_larger_than_its_reservation_is_rejected(local: LocalCluster) -> None:
    pool = local.create_reservation(config(1, 2))
    requests = [call(until_stopped, name=f"job-{i}", resources=TPU) for i in range(3)]
    with pytest.raises(RefusedError, match="3 slices are asked for at once, more than the 2"):
        local.launch_group(requests, GROUP, pool)
    assert local.list_jobs() == []
    local.launch_group(requests[:2], GROUP, pool)


def test_a_reservation_offers_one_slice_more_than_is_used(local: LocalCluster) -> None:
    pool = local.create_reservation(config(1, 3))
    seen = []
    for i in range(4):
        info = local.get_reservation(pool)
        seen.append((info.allocated_resources.replicas, info.free, len(info.jobs)))
        local.launch(call(until_stopped, name=f"job-{i}", resources=TPU))
    assert seen == [(1, 1, 0), (2, 1, 1), (3, 1, 2), (3, 0, 3)]
    assert local.get_reservation(pool).pending_resources.replicas == 0
    assert local.get_reservation(pool).expires_at > time.time() + 3500


def test_a_reservation_that_is_released_ends_its_jobs(local: LocalCluster) -> None:
    pool = local.create_reservation(config(1, 2))
    job_id = local.launch(call(until_stopped, resources=TPU, reservation_id=pool))
    local.release_reservation(pool)
    assert local.poll(job_id).reason == "its reservation was released"
    local.release_reservation(pool)  # changes nothing
    info = local.get_reservation(pool)
    assert (info.released, info.allocated_resources.replicas) == (True, 0)
    with pytest.raises(NotFoundError, match="no reservation"):
        local.launch(call(succeed, resources=TPU, reservation_id=pool))


def test_a_reservation_expires(local: LocalCluster) -> None:
    pool = local.create_reservation(config(1, 2, ttl_seconds=1))
    eventually(lambda: local.get_reservation(pool).released)


def test_a_reservation_ends_with_the_job_that_made_it(local: LocalCluster) -> None:
    local.wait(local.launch(call(reserve_and_return)), raise_on_failure=True)
    assert local.get_reservation(ReservationId("of-a-job")).released


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (config(3, 2), "max_resources.replicas"),
        (config(0, 0), "max_resources.replicas"),
        (ReservationConfig(TPU, ResourceConfig()), "max_resources"),
        (config(1, 2, ttl_seconds=0), "ttl_seconds"),
    ],
)
def test_impossible_reservations(local: LocalCluster, wrong: ReservationConfig, field: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        local.create_reservation(wrong)
    assert field in [error.field for error in caught.value.fields]


def test_unknown_reservations(local: LocalCluster) -> None:
    for ask in (local.get_reservation, local.release_reservation):
        with pytest.raises(NotFoundError, match="missing"):
            ask(ReservationId("missing"))


def test_actors_are_found_by_name(local: LocalCluster) -> None:
    metadata = local.metadata
    job_id = local.launch(call(until_stopped))
    a = metadata.register("pool", "127.0.0.1:1", job_id, {"zone": "a"})
    b = metadata.register("pool", "127.0.0.1:2", job_id)
    c = metadata.register("curriculum", "127.0.0.1:3", job_id)
    assert metadata.lookup("pool").actor_id == b
    assert [e.actor_id for e in metadata.lookup_all("pool")] == [a, b]
    assert [e.actor_id for e in metadata.list_actors()] == [c, a, b]
    assert [e.actor_id for e in metadata.list_actors("po")] == [a, b]
    assert metadata.lookup_all("pool")[0].metadata == {"zone": "a"}
    metadata.unregister(b)
    metadata.unregister(b)  # changes nothing
    assert metadata.lookup("pool").actor_id == a
    assert metadata.lookup_all("missing") == []
    with pytest.raises(ActorNotFoundError, match="did you mean curriculum"):
        metadata.lookup("curiculum")


def test_endpoints_live_as_long_as_their_task(local: LocalCluster) -> None:
    """Fact 22: visible while the task lives, gone on end and retry; an ended task cannot register."""
    job_id = local.launch(call(register_and_stay, "actor"))
    eventually(lambda: local.metadata.lookup_all("actor"))
    local.preempt(job_id)
    eventually(lambda: [e.address for e in local.metadata.lookup_all("actor")] == ["127.0.0.1:2"])
    local.terminate(job_id)
    assert local.metadata.lookup_all("actor") == []
    with pytest.raises(RefusedError, match="is stopped"):
        local.metadata.register("actor", "127.0.0.1:9", job_id)
    with pytest.raises(NotFoundError):
        local.metadata.register("actor", "127.0.0.1:9", JobId("missing"))


def test_namespaces_are_isolated(local: LocalCluster) -> None:
    """Fact 23."""
    local.launch(call(register_and_stay, "actor", namespace=Namespace("other")))
    mine = local.launch(call(register_and_stay, "actor"))
    eventually(lambda: local.metadata.lookup_all("actor"))
    assert [e.job_id for e in local.metadata.list_actors()] == [mine]
    assert local.metadata.lookup("actor").namespace == "default"


def test_watch_sends_what_is_there_and_then_what_changes(local: LocalCluster) -> None:
    metadata = local.metadata
    job_id = local.launch(call(until_stopped))
    first = metadata.register("pool-a", "127.0.0.1:1", job_id)
    changes = metadata.watch(prefix="pool-")
    seen: list[ActorChanges] = [next(changes)]
    assert seen[0].reset
    assert [e.actor_id for e in seen[0].added] == [first]

    metadata.register("other", "127.0.0.1:2", job_id)  # is not watched
    second = metadata.register("pool-b", "127.0.0.1:3", job_id)
    assert next(changes) == ActorChanges(reset=False, added=(metadata.lookup("pool-b"),))
    metadata.unregister(first)
    assert next(changes) == ActorChanges(reset=False, removed=(first,))
    reader = threading.Thread(target=lambda: seen.append(next(changes)))
    reader.start()  # waits
    metadata.unregister(second)
    ended(reader)
    assert seen[1:] == [ActorChanges(reset=False, removed=(second,))]


def test_a_job_that_watches_can_be_stopped(local: LocalCluster) -> None:
    job_id = local.launch(call(watch_for_ever))
    eventually(lambda: local.metadata.lookup_all("watcher"))
    local.terminate(job_id)
    eventually(lambda: local.poll(job_id).tasks[0].state is TaskState.KILLED)


def test_it_has_a_registry(local: LocalCluster) -> None:
    assert isinstance(local.metadata, Metadata)


@pytest.mark.parametrize("use_processes", [False, True])
def test_a_job_that_waits_for_an_actor_takes_no_worker(use_processes: bool) -> None:
    with LocalCluster(max_workers=1, use_processes=use_processes) as cluster:
        waits = cluster.launch(call(wait_for_it, name="waits"))
        hosts = cluster.launch(call(register_late, name="hosts"))
        eventually(lambda: cluster.poll(hosts).status is JobStatus.RUNNING)  # though the other waits
        assert cluster.wait(waits, timeout=600).status is JobStatus.SUCCEEDED


def test_a_job_that_waits_for_an_actor_can_be_stopped() -> None:
    with LocalCluster(max_workers=1) as cluster:
        waits = cluster.launch(call(wait_for_it, name="waits"))
        eventually(lambda: cluster.poll(waits).status is JobStatus.RUNNING)
        cluster.terminate(waits)
        eventually(lambda: cluster.poll(waits).tasks[0].state is TaskState.KILLED)
        assert not cluster.await_actor("late", "default", 0.01)
