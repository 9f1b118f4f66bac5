"""Finding the actors of a fray cluster, over its API."""

from __future__ import annotations

from typing import Any

import pytest

from controller import Controller
from fray._pb import cluster_pb2 as pb
from fray.cluster import ActorId, Entrypoint, FrayCluster, JobId, JobRequest, RefusedError
from fray.rpc import ClusterResolver
from scripted import Scripted
from waiting import eventually

COMMAND = Entrypoint.from_command(["true"])


def test_what_a_registration_says(remote: FrayCluster, monkeypatch: pytest.MonkeyPatch) -> None:
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
        eventually(lambda: resolver.directory.known("counter"), 60)
        controller.outages.before["Watch"] = 2
        controller.outages.before["LookupAll"] = 2
        assert handle.increment(1) == 3

        # It moves, and the old one says that another incarnation is there.
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
