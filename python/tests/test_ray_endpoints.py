"""The registry of actors on Ray, without Ray: what it decides, and its service for other programs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fray.cluster import (
    AccessDeniedError,
    ActorEndpoint,
    ActorId,
    ActorNotFoundError,
    AlreadyExistsError,
    FrayCluster,
    InvalidRequestError,
    JobId,
    JobInfo,
    JobStatus,
    Namespace,
    NotFoundError,
    RefusedError,
)
from fray.cluster.context import JobContext
from fray.cluster.ray.actors.certificates import Authority, new_key, server_certificate
from fray.cluster.ray.actors.endpoint_registry import EndpointRegistry, Fate
from fray.cluster.ray.actors.endpoint_table import Change, EndpointTable, Registration, Selection
from fray.cluster.ray.actors.metadata import RayMetadata
from fray.cluster.ray.actors.metadata_service import Access, MetadataService
from fray.rpc import ActorServer, ClusterResolver
from fray.rpc.errors import ActorDeadError

PATIENCE = 300.0
RL = Namespace("rl")
JOB = JobId("actor-counter-1")


def endpoint(name: str = "counter", port: int = 1, job: str = JOB, task: int = 0) -> ActorEndpoint:
    actor_id = ActorId(f"actor-{name.replace('/', '')}{port}".ljust(32, "0"))
    return ActorEndpoint(actor_id, name, f"127.0.0.1:{port}", JobId(job), RL, {}, task)


def addresses(table: EndpointTable, name: str = "counter") -> list[str]:
    return [each.address for each in table.named(RL, name)]


def test_a_name_may_have_several_endpoints_the_oldest_first() -> None:
    table = EndpointTable()
    for port in (3, 1, 2):
        table.register(Registration(endpoint(port=port, task=port)))
    assert addresses(table) == ["127.0.0.1:3", "127.0.0.1:1", "127.0.0.1:2"]
    assert [e.address for e in table.named(RL, "counter", "other")] == []


@pytest.mark.parametrize(
    ("new", "stay"),
    [
        (Registration(endpoint(port=2)), 2),  # another of the same task and attempt
        (Registration(endpoint(port=2), attempt=1), 1),  # of the next attempt
        (Registration(endpoint(port=2), unique=True), 1),
        (Registration(replace(endpoint(port=2), address="127.0.0.1:1")), 1),
        (Registration(replace(endpoint(port=2), actor_id=endpoint().actor_id)), 1),
        (Registration(endpoint(port=2, task=1)), 2),
    ],
)
def test_what_gives_way(new: Registration, stay: int) -> None:
    table = EndpointTable([Registration(endpoint())])
    table.register(new)
    assert len(addresses(table)) == stay


def test_a_unique_name_is_one_actors() -> None:
    table = EndpointTable()
    table.register(Registration(endpoint(), unique=True))
    with pytest.raises(AlreadyExistsError, match=r"is at 127\.0\.0\.1:1; unregister"):
        table.register(Registration(endpoint(port=2, job="other")))
    assert addresses(table) == ["127.0.0.1:1"]


def test_what_is_not_renewed_expires() -> None:
    table = EndpointTable()
    table.register(Registration(endpoint(), expires=10.0))
    table.register(Registration(endpoint(port=2, task=1)))
    assert table.next_expiry == 10.0
    assert table.expire(9.9) == Change()
    assert table.expire(10.0).removed == (endpoint().actor_id,)
    assert table.next_expiry is None


def test_changes_since_a_version() -> None:
    table, everything = EndpointTable([Registration(endpoint())]), Selection(RL)
    first = table.since(everything, None)
    assert first is not None
    assert first.reset
    assert len(first.added) == 1
    before = table.version
    assert table.since(everything, before) is None
    table.register(Registration(endpoint("other", 2)))
    table.drop([endpoint().actor_id])
    changes = table.since(everything, before)
    assert changes is not None
    assert (changes.reset, [e.name for e in changes.added], changes.removed) == (
        False,
        ["other"],
        (endpoint().actor_id,),
    )
    assert table.since(Selection(RL, name="unrelated"), before) is None
    assert table.since(Selection(Namespace("eval")), before) is None
    too_old = table.since(everything, before - 100)
    assert too_old is not None
    assert too_old.reset


def test_registering_again_what_is_known_is_no_change() -> None:
    table = EndpointTable([Registration(endpoint())])
    before = table.version
    table.register(Registration(endpoint(), expires=1.0))
    assert table.version == before


# The registry


class Kept:
    """What a registry saved."""

    def __init__(self) -> None:
        self.all: dict[ActorId, Registration] = {}

    def load(self) -> list[Registration]:
        return list(self.all.values())

    def save(self, change: Change) -> None:
        for each in change.added:
            self.all[each.endpoint.actor_id] = each
        for actor_id in change.removed:
            self.all.pop(actor_id, None)


class Jobs:
    """The jobs that host actors."""

    def __init__(self) -> None:
        self.all = {JOB: JobInfo(JOB, "actor-counter", RL, JobStatus.RUNNING, attempt=1, ready=True)}
        self.fates: dict[str, Fate] = {}

    def job(self, job_id: JobId) -> JobInfo | None:
        return self.all.get(job_id)

    def fate(self, namespace: Namespace, name: str, job_id: str) -> Fate:
        assert namespace
        return self.fates.get(job_id or name, Fate())


def run(part: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(part())


def test_a_registry_knows_after_a_restart_what_it_has_answered() -> None:
    kept, jobs = Kept(), Jobs()

    async def first() -> None:
        registry = EndpointRegistry(kept, jobs)
        registry.register(RL, endpoint())
        gone = registry.register(RL, endpoint("gone", 2))
        registry.unregister([gone])

    async def second() -> None:
        registry = EndpointRegistry(kept, jobs)
        assert [e.name for e in registry.list_actors(RL)] == ["counter"]

    run(first)
    run(second)


@pytest.mark.parametrize(("attempt", "ready"), [(2, True), (1, False)], ids=["replaced", "lost"])
def test_an_attempt_that_is_over_takes_no_name(attempt: int, ready: bool) -> None:
    async def part() -> None:
        jobs = Jobs()
        registry = EndpointRegistry(Kept(), jobs)
        registry.register(RL, endpoint(), unique=True, caller=1)
        jobs.all[JOB] = replace(jobs.all[JOB], attempt=attempt, ready=ready)
        with pytest.raises(RefusedError, match=f"attempt 1 of job {JOB} is over"):
            registry.register(RL, endpoint(port=2), unique=True, caller=1)
        assert [e.address for e in registry.lookup_all(RL, "counter")] == ["127.0.0.1:1"]

    run(part)


@pytest.mark.parametrize(("job_id", "want"), [(JOB, 3), ("other-job", 0), ("", 0)])
def test_a_host_registers_as_the_attempt_that_it_is(
    monkeypatch: pytest.MonkeyPatch, job_id: str, want: int
) -> None:
    class Sent:
        def call(self, method: str, *args: Any) -> Any:
            assert method == "actors"
            self.args = args
            return "actor-1"

    for name, value in JobContext(JOB, "actor-counter", RL, attempt=3).variables().items():
        monkeypatch.setenv(name, value)
    sent: Any = Sent()
    RayMetadata(sent, RL).register("counter", "127.0.0.1:1", JobId(job_id))
    assert sent.args[0] == "register"
    assert sent.args[-1] == want


def test_a_poll_waits_for_what_it_asks_for_only() -> None:
    async def part() -> None:
        registry = EndpointRegistry(Kept(), Jobs())
        wanted = Selection(RL, "counter")
        begun = await registry.poll(wanted, "", 0, PATIENCE)
        assert begun.changes is not None
        assert begun.changes.reset
        waiting = asyncio.ensure_future(registry.poll(wanted, begun.boot, begun.version, PATIENCE))
        await asyncio.sleep(0)
        registry.register(RL, endpoint("other", 2))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        registry.register(RL, endpoint())
        found = await asyncio.wait_for(waiting, PATIENCE)
        assert found.changes is not None
        assert [e.name for e in found.changes.added] == ["counter"]
        nothing = await registry.poll(wanted, found.boot, found.version, 0.0)
        assert nothing.changes is None
        other_boot = await registry.poll(wanted, "of another process", found.version, PATIENCE)
        assert other_boot.changes is not None
        assert other_boot.changes.reset

    run(part)


def test_a_poll_ends_with_the_job_that_it_waits_for() -> None:
    async def part() -> None:
        jobs = Jobs()
        registry = EndpointRegistry(Kept(), jobs)
        begun = await registry.poll(Selection(RL), "", 0, PATIENCE, JOB)
        waiting = asyncio.ensure_future(
            registry.poll(Selection(RL), begun.boot, begun.version, PATIENCE, JOB)
        )
        await asyncio.sleep(0)
        jobs.all[JOB] = replace(jobs.all[JOB], status=JobStatus.FAILED, reason="exit code 3")
        registry.touch()
        with pytest.raises(RefusedError, match="it is failed, exit code 3"):
            await asyncio.wait_for(waiting, PATIENCE)

    run(part)


def test_an_endpoint_ends_with_its_attempt() -> None:
    async def part() -> None:
        jobs = Jobs()
        registry = EndpointRegistry(Kept(), jobs)
        registry.register(RL, endpoint())
        jobs.all[JOB] = replace(jobs.all[JOB], attempt=2)
        registry.register(RL, endpoint(port=2))
        registry.end_attempt(JOB, 1)
        assert [e.address for e in registry.lookup_all(RL, "counter")] == ["127.0.0.1:2"]
        registry.end_attempt(JOB, 2)
        assert registry.lookup_all(RL, "counter") == []

    run(part)


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        (replace(endpoint(), name="no spaces"), InvalidRequestError, "name"),
        (replace(endpoint(), address="127.0.0.1"), InvalidRequestError, "HOST:PORT"),
        (replace(endpoint(), address="127.0.0.1:70000"), InvalidRequestError, "HOST:PORT"),
        (replace(endpoint(), actor_id=ActorId("mine")), InvalidRequestError, "actor_id"),
        (replace(endpoint(), job_id=JobId("nothing")), NotFoundError, "there is no job nothing"),
    ],
)
def test_what_cannot_be_registered(wrong: ActorEndpoint, error: type[Exception], match: str) -> None:
    async def part() -> None:
        registry = EndpointRegistry(Kept(), Jobs())
        with pytest.raises(error, match=match):
            registry.register(RL, wrong)
        assert registry.list_actors(RL) == []

    run(part)


def test_a_job_that_has_ended_has_no_endpoints() -> None:
    async def part() -> None:
        jobs = Jobs()
        jobs.all[JOB] = replace(jobs.all[JOB], status=JobStatus.STOPPED)
        with pytest.raises(RefusedError, match="is stopped"):
            EndpointRegistry(Kept(), jobs).register(RL, endpoint())

    run(part)


# The service, by the client of a fray cluster


class Served:
    """A registry with its service, on an event loop of its own."""

    def __init__(self, directory: Path) -> None:
        self.kept, self.jobs = Kept(), Jobs()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        identity = directory / "identity.pem"
        identity.write_bytes(Authority(new_key(), "c").identity("rl"))
        self.access = Access(0, "127.0.0.1", "secret", server_certificate())
        self.identity = identity
        self.start()

    def start(self) -> None:
        """Serve, again at the port that it had."""

        async def begin() -> None:
            self.registry = EndpointRegistry(self.kept, self.jobs)
            self.service = MetadataService(self.registry, self.access, lambda _: self.identity)
            await self.service.start()

        self.do(begin())
        self.access = replace(self.access, port=self.service.port)

    def do(self, part: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(part, self.loop).result(PATIENCE)

    def stop(self) -> None:
        self.do(self.service.stop())

    def close(self) -> None:
        """Stop, and end the event loop."""
        self.stop()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def connect(self, token: str = "secret") -> FrayCluster:
        spec = f"127.0.0.1:{self.service.port}"
        return FrayCluster(spec, namespace="rl", token=token, timeout=PATIENCE)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    yield served
    served.close()


class Counter:
    value = 0

    def increment(self) -> int:
        self.value += 1
        return self.value


def test_a_process_without_ray_finds_and_calls_an_actor(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = served.connect()
    monkeypatch.setenv("FRAY_ACTOR_IDENTITY", str(served.identity))
    monkeypatch.setenv("FRAY_JOB_ID", JOB)
    monkeypatch.setenv("FRAY_NAMESPACE", "rl")
    with ActorServer(cluster) as server:
        server.register("counter", Counter())
        monkeypatch.delenv("FRAY_ACTOR_IDENTITY")  # it is asked for, as under fray run
        monkeypatch.delenv("FRAY_JOB_ID")
        other = served.connect()
        counter = ClusterResolver(other).lookup("counter")
        assert [counter.increment(), counter.increment()] == [1, 2]
        served.stop()
        assert counter.increment() == 3, "a registry that is away holds a call up"
        served.start()
        assert other.metadata.lookup("counter").address == server.address
        other.close()
    assert served.registry.list_actors(RL) == []
    cluster.close()


def test_a_death_is_reported_by_the_service(served: Served) -> None:
    cluster = served.connect()
    served.jobs.fates["counter"] = Fate("it was deleted")
    with pytest.raises(ActorNotFoundError, match="it was deleted") as found:
        cluster.metadata.lookup("counter")
    assert found.value.death == "it was deleted"
    handle = ClusterResolver(cluster).existing("counter")
    with pytest.raises(ActorDeadError, match="it was deleted"):
        handle.increment()
    cluster.close()


def test_the_service_wants_its_token(served: Served) -> None:
    cluster = served.connect("wrong")
    with pytest.raises(AccessDeniedError, match="FRAY_CLUSTER_TOKEN"):
        cluster.metadata.list_actors()
    with pytest.raises(AccessDeniedError, match="FRAY_CLUSTER_TOKEN"):
        next(cluster.metadata.watch())
    cluster.close()
