"""docs/reference-map.md names every interface of the four design documents, and where it is here."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from fray.cluster import JobId, LocalCluster, Namespace
from fray.rpc import ActorContext, ActorServer, ClusterResolver, LocalResolver

PAGE = Path(__file__).parents[2] / "docs" / "reference-map.md"

DOCUMENTS = {
    "Fray-Zero": """
        JobId ActorId ReservationId Namespace JobStatus JobGroupConfig ReservationConfig ReservationInfo
        Cluster.launch Cluster.launch_group Cluster.monitor Cluster.poll Cluster.terminate Cluster.list_jobs
        Cluster.wait Cluster.create_reservation Cluster.release_reservation Cluster.get_reservation
        Cluster.namespace Cluster.metadata current_cluster ActorEndpoint Metadata.register Metadata.unregister
        Metadata.lookup Metadata.lookup_all Metadata.list_actors Resolver.lookup Resolver.lookup_all
        Resolver.wait_for_actor ClusterResolver FixedResolver LocalResolver LocalCluster ActorContext
        ActorContext.from_environment ActorHandle ActorHandle.actor_id ActorHandle.address ActorMethod
        ActorMethod.remote ActorFuture.result ActorFuture.done ActorFuture.exception ActorServer
        ActorServer.address ActorServer.register ActorServer.unregister ActorServer.serve
        ActorServer.serve_background ActorServer.shutdown FrayBackend""",
    "Actor and Resolver": """
        GcsResolver MetadataResolver FixedResolver Resolver.resolve NameMapping ActorServer.start
        ActorServer.register RpcOptions RpcClient RpcClient.with_options RpcMethod ActorService ActorRequest
        ActorResponse FLUSTER_NAMESPACE FLUSTER_JOB_ID""",
    "Actor Support": """
        FrayContext FrayContext.create_actor FrayContext.delete_actor FrayContext.get FrayContext.put
        FrayContext.run FrayContext.wait get_actor_status ActorStatus ActorInfo preemptible= get_if_exists=
        lifetime= name= _FrayActorHandle _FrayActorMethod _FrayFuture FrayController FrayControllerServicer
        FrayWorker FrayWorkerServicer CreateActor CallActor GetActorStatus DeleteActor InstantiateActor
        ExecuteActorMethod DestroyActor ListActors ActorSpec ActorCall ActorCallResult ActorDeleteRequest
        ActorList""",
    "Fray-Lite": """
        Client Client.submit Client.create_actor Client.create_actor_group Client.shutdown current_client
        set_current_client FRAY_CLIENT_SPEC ResourceConfig JobRequest JobHandle.job_id JobHandle.wait
        JobHandle.status JobHandle.terminate JobStatus ActorHandle ActorMethod ActorFuture ActorGroup.handles
        ActorGroup.jobs LocalClient RayClient FrayIrisClient IrisActorHandle _IrisActorMethod _host_actor
        ActorBackend ZephyrWorker""",
}
"""The public names that each document defines."""


def _rows(document: str) -> list[tuple[list[str], str]]:
    """Return the names of each row of a document's table, and where they are."""
    section = PAGE.read_text().split(f"\n## {document}\n")[1].split("\n## ")[0]
    cells = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return [(re.findall("`([^`]+)`", first), here.strip("` ")) for first, here, _ in cells]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_page_names_every_interface(document: str) -> None:
    named = {name for names, _ in _rows(document) for name in names}
    assert set(DOCUMENTS[document].split()) - named == set()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_place_exists(document: str) -> None:
    for _, here in _rows(document):
        if here != "none":
            assert _found(here) is not None, here


def _found(path: str) -> Any:
    """Return what a dotted path names, within a package of fray."""
    package, *names = path.removeprefix("fray.").split(".")
    found: Any = importlib.import_module(f"fray.{package}")
    for name in names:
        found = getattr(found, name)
    return found


class Counter:
    def __init__(self) -> None:
        self.value = 0

    def increment(self, ctx: ActorContext, by: int = 1) -> str:
        self.value += by
        return f"{self.value} in {ctx.namespace}"

    def others(self, ctx: ActorContext) -> list[str]:
        return ctx.resolver.resolve("counter")


def test_a_server_of_a_registry() -> None:
    with LocalCluster() as cluster:
        server = ActorServer(cluster.metadata)
        try:
            server.register("counter", Counter())
            server.start()
            assert ClusterResolver(cluster).lookup("counter").increment(2) == "2 in default"
        finally:
            server.shutdown()


def test_a_server_needs_a_cluster() -> None:
    with pytest.raises(TypeError, match=r"got '0\.0\.0\.0'; write ActorServer\(current_cluster\(\), host="):
        ActorServer("0.0.0.0", 9000)  # type: ignore[arg-type]


def test_a_context_for_unit_tests() -> None:
    with LocalResolver() as resolver, LocalCluster() as cluster:
        resolver.register("counter", Counter())
        context = ActorContext(cluster, resolver, JobId("train-1"), Namespace("rl"))
        assert (context.cluster, context.resolver) == (cluster, resolver)
        assert (context.job_id, context.namespace) == ("train-1", "rl")
        assert context.remaining() is None
        assert Counter().increment(context, 2) == "2 in rl"
        assert Counter().others(context) == resolver.resolve("counter")
        assert ActorContext(cluster).namespace == cluster.namespace
