"""The namespace that a server is given is that in which its actors are found."""

from __future__ import annotations

import pytest

import hosted
from fray.cluster import AccessDeniedError, ActorNotFoundError, LocalCluster, Namespace
from fray.cluster.context import JobContext, job_scope
from fray.cluster.types import JobId
from fray.rpc import ActorServer, ClusterResolver
from waiting import eventually


def test_actors_are_found_in_the_namespace_of_their_server() -> None:
    with LocalCluster() as cluster, ActorServer(cluster, namespace="x") as server:
        server.register("counter", hosted.Counter())
        assert ClusterResolver(cluster, namespace="x").lookup("counter").increment(2) == 2
        assert server.ready
        with pytest.raises(ActorNotFoundError):
            ClusterResolver(cluster).lookup("counter")
        server.register("another", hosted.Counter())
        assert (
            ClusterResolver(cluster, namespace="x")
            .lookup("counter")
            .by_handle(ClusterResolver(cluster, namespace="x").lookup("another"), 3)
            == 3
        )
        assert ClusterResolver(cluster, namespace="x").lookup("counter").itself().seen() == [2]
        server.unregister("counter")
        eventually(lambda: ClusterResolver(cluster, namespace="x").resolve("counter") == [], 300)
        server.shutdown()
        assert cluster.metadata_of("x").list_actors() == []


def test_jobs_host_actors_of_their_own_namespace_only() -> None:
    with LocalCluster() as cluster:
        context = JobContext(JobId("train-1"), "train", Namespace("rl"))
        with job_scope(context, cluster):
            with pytest.raises(
                AccessDeniedError, match='of namespace "rl" may not host actors of namespace "x"'
            ):
                ActorServer(cluster, namespace="x")
            ActorServer(cluster, namespace="rl").shutdown()
            ActorServer(cluster).shutdown()
