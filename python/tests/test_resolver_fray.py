"""Finding the actors of a fray cluster, over its API."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from controller import TOKEN, Controller
from fray._pb import cluster_pb2 as pb
from fray.cluster import (
    ActorId,
    ActorNotFoundError,
    Entrypoint,
    FrayCluster,
    JobGroupConfig,
    JobId,
    JobRequest,
    RefusedError,
    ReservationConfig,
    ResourceConfig,
    WaitTimeoutError,
)
from fray.rpc import ActorServer, ClusterResolver
from fray.rpc.errors import DeniedError
from identities import default_authority, make_identity
from scripted import Scripted
from test_rpc_server import Counter
from waiting import eventually

COMMAND = Entrypoint.from_command(["true"])


def test_the_fields_of_a_registration(remote: FrayCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[pb.RegisterRequest] = []

    def call(_method: object, request: Any, *_: object) -> pb.RegisterResponse:
        sent.append(request)
        return pb.RegisterResponse(actor_id=request.actor_id or "actor-made")

    monkeypatch.setattr(remote._connection, "call", call)
    chosen = ActorId("actor-" + 26 * "q")
    register = remote.metadata.register
    assert (
        register("a", "10.0.0.1:80", JobId("train"), actor_id=chosen, unique=True, ttl=1.5, task=3) == chosen
    )
    assert register("a", "10.0.0.1:80", JobId("train")) == "actor-made"
    first, second = sent
    assert (first.actor_id, first.unique, first.task, first.job_id) == (chosen, True, 3, "train")
    assert (first.ttl.seconds, first.ttl.nanos) == (1, 500_000_000)
    assert (second.actor_id, second.unique, second.task, second.HasField("ttl")) == ("", False, 0, False)
    assert first.request_id != second.request_id


def test_calls_while_the_controller_comes_and_goes(controller: Controller, remote: FrayCluster) -> None:
    job_id = remote.launch(JobRequest("train", COMMAND))
    resolver = ClusterResolver(remote)
    with Scripted() as first, Scripted() as second:
        first.incarnation = remote.metadata.register("counter", first.address, job_id)
        handle = resolver.wait_for_actor("counter", job_id=job_id)
        assert handle.namespace == "rl"
        assert [handle.increment(1), handle.increment(1)] == [1, 2]
        eventually(lambda: resolver.directory.known("counter"), 300)
        controller.outages.before["Watch"] = 2
        controller.outages.before["LookupAll"] = 2
        assert handle.increment(1) == 3

        # It moves, and the old server answers that another incarnation is there.
        remote.metadata.unregister(ActorId(first.incarnation))
        first.incarnation = "actor-" + 26 * "z"
        second.incarnation = remote.metadata.register("counter", second.address, job_id)
        assert handle.increment(1) == 1
        assert handle.address == second.address
        assert handle.actor_id == second.incarnation


def test_waiting_for_the_actor_of_a_job_that_ends(controller: Controller, remote: FrayCluster) -> None:  # 33
    job_id = remote.launch(JobRequest("train", COMMAND))
    controller.finish(job_id, pb.JOB_STATUS_FAILED, "out of memory")
    with pytest.raises(RefusedError, match=f"job {job_id} has ended, it is failed: out of memory"):
        ClusterResolver(remote).wait_for_actor("counter", 3600, job_id)


@pytest.fixture
def fresh(controller: Controller) -> Iterator[FrayCluster]:
    """A FrayCluster on `controller` that has no namespace yet, as under fray run."""
    cluster = FrayCluster(controller.address, token=TOKEN, timeout=300)
    yield cluster
    cluster.close()


@pytest.mark.parametrize("founding", ["job", "group", "reservation"])
def test_what_was_made_before_the_first_launch_is_of_the_namespace_that_founds(
    fresh: FrayCluster, founding: str
) -> None:
    resolver, registry = ClusterResolver(fresh), fresh.metadata
    early = resolver.handle("counter")
    assert (resolver.directory.namespace, early.namespace, resolver.resolve("counter")) == ("", "", [])
    with pytest.raises(ActorNotFoundError, match="this program has no namespace yet"):
        resolver.lookup("counter")
    with pytest.raises(WaitTimeoutError, match="this program has no namespace yet"):
        resolver.wait_for_actor("counter", 0.01)
    match founding:
        case "job":
            job_id = fresh.launch(JobRequest("train", COMMAND))
        case "group":
            job_id = fresh.launch_group([JobRequest("train", COMMAND)], JobGroupConfig("pool"))[0]
        case _:
            size = ResourceConfig.with_tpu("v5litepod-4")
            fresh.create_reservation(ReservationConfig(size, size))
            job_id = fresh.launch(JobRequest("train", COMMAND))
    with Scripted() as server:
        server.incarnation = fresh.metadata.register("counter", server.address, job_id)
        assert resolver.wait_for_actor("counter", job_id=job_id).increment(1) == 1
        assert [early.increment(1), resolver.lookup("counter").increment(1)] == [2, 3]
        assert early.namespace == resolver.directory.namespace == fresh.namespace != ""
        assert ClusterResolver(fresh).directory is resolver.directory
        assert [each.name for each in registry.list_actors()] == ["counter"]


def test_who_waits_before_the_first_launch_finds_what_that_hosts(fresh: FrayCluster) -> None:
    found: list[int] = []
    resolver = ClusterResolver(fresh)
    waiting = threading.Thread(target=lambda: found.append(resolver.wait_for_actor("counter").increment(1)))
    waiting.start()
    with Scripted() as server:
        job_id = fresh.launch(JobRequest("train", COMMAND))
        server.incarnation = fresh.metadata.register("counter", server.address, job_id)
        waiting.join(300)
        assert found == [1]


def test_each_namespace_has_an_identity_under_fray_run(
    controller: Controller, fresh: FrayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = ClusterResolver(fresh)
    job_id = fresh.launch(JobRequest("train", COMMAND))
    mine = make_identity(tmp_path, fresh.namespace)
    monkeypatch.setenv("FRAY_ACTOR_IDENTITY", mine)
    server = ActorServer(fresh)  # as in a job, which has its namespace's
    monkeypatch.delenv("FRAY_ACTOR_IDENTITY")
    try:
        server._job_id = job_id
        server.register("counter", Counter())
        server.serve_background()
        controller.identities[fresh.namespace] = mine
        controller.outages.before["Identity"] = 1  # it is asked for again
        assert resolver.wait_for_actor("counter").add(1) == 1
        assert resolver.lookup("counter").add(1) == 2
        assert controller.outages.calls["Identity"] == 2
    finally:
        server.shutdown()


class Renewed(dict[str, str]):
    """The files of fray run, which writes one anew when it is asked for again."""

    def __init__(self, namespace: str, before: str, renew: Callable[[], str]) -> None:
        super().__init__({namespace: before})
        self._renew, self._asked = renew, 0

    def __getitem__(self, namespace: str) -> str:
        self._asked += 1
        return self._renew() if self._asked > 1 else super().__getitem__(namespace)


def test_the_authority_of_a_new_leader_is_asked_for(
    controller: Controller, fresh: FrayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, both = ec.generate_private_key(ec.SECP256R1()), tmp_path / "both"
    both.mkdir()
    job_id = fresh.launch(JobRequest("train", COMMAND))
    space = fresh.namespace
    trusted = [leader, default_authority()]
    monkeypatch.setenv("FRAY_ACTOR_IDENTITY", make_identity(both, space, authority=leader, trusted=trusted))
    server = ActorServer(fresh)
    monkeypatch.delenv("FRAY_ACTOR_IDENTITY")
    try:
        server._job_id = job_id
        server.register("counter", Counter())
        server.serve_background()
        mine = make_identity(tmp_path, space)  # of before the leader led
        renew = partial(make_identity, tmp_path, space, trusted=trusted)
        controller.identities = Renewed(space, mine, renew)
        handle = ClusterResolver(fresh).wait_for_actor("counter").options(resolve_timeout=10)
        assert handle.add(1) == 1
        assert controller.outages.calls["Identity"] == 2
    finally:
        server.shutdown()


def test_a_rejected_identity_ends_the_call(controller: Controller, fresh: FrayCluster) -> None:
    resolver = ClusterResolver(fresh)
    job_id = fresh.launch(JobRequest("train", COMMAND))
    controller.refuse = lambda context: context.abort(
        grpc.StatusCode.FAILED_PRECONDITION, "the store is read-only"
    )
    fresh.metadata.register("counter", "127.0.0.1:1", job_id)
    handle = resolver.wait_for_actor("counter")
    with pytest.raises(DeniedError, match=r"the identity of namespace .*: the store is read-only"):
        handle.increment(1)
