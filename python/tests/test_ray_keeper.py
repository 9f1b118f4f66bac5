"""How actors are kept on Ray, without Ray: attempts, budgets, ends, and another process of the registry."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fray.cluster import (
    Entrypoint,
    JobId,
    JobRequest,
    JobStatus,
    Namespace,
    TaskState,
    Termination,
    TerminationCause,
)
from fray.cluster.ray.actors import keeper
from fray.cluster.ray.actors.fates import fate_of, names_of
from fray.cluster.ray.actors.keeper import ActorKeeper, Host, HostLostError, HostUnmadeError
from fray.cluster.ray.job_table import JobTable
from fray.cluster.ray.records import Environment, Job, Launch, Place, TaskEnd

PATIENCE = 300.0
HERE = Place("node", "10.0.0.1")
FAILED = TaskEnd(0, TaskState.FAILED, "exit status 3", 3)


class FakeHost:
    """A process that ends as the test has it."""

    def __init__(self) -> None:
        self.end: asyncio.Future[TaskEnd] = asyncio.get_running_loop().create_future()
        self.stopped = False
        self.killed = False

    async def outcome(self) -> TaskEnd:
        return await asyncio.shield(self.end)

    async def stop(self) -> None:
        self.stopped = True
        if not self.end.done():
            self.end.set_result(TaskEnd(0, TaskState.KILLED))

    async def leave(self) -> None:
        assert self.end.done()

    def kill(self) -> None:
        self.killed = True
        if not self.end.done():
            self.end.set_exception(HostLostError())
            self.end.exception()  # which the test may not want


class Cluster:
    """A table of jobs with a keeper, and the hosts that it has started."""

    def __init__(
        self, jobs: Sequence[Job] = (), hosts: dict[tuple[JobId, int], FakeHost] | None = None
    ) -> None:
        self.table = JobTable(Namespace("rl"), self._changed)
        self.keeper: ActorKeeper | None = None
        self.table.load(jobs)
        self.started = hosts or {}
        self.living = set(self.started)
        self.lost = ""
        self.ended: list[tuple[JobId, int]] = []
        self.keeper = ActorKeeper(self.table, self, self._attempt_ended, self._stop)
        for job in jobs:
            self.keeper.keep(job.job_id)

    def _changed(self, _: Job) -> None:
        if self.keeper is not None:
            self.keeper.touch()

    def _attempt_ended(self, job_id: JobId, attempt: int) -> None:
        self.ended.append((job_id, attempt))

    def _stop(self, job_id: JobId, reason: str) -> None:
        self.table.stop(job_id, reason, 1.0)

    async def start(self, job: Job, attempt: int) -> Host:
        host = self.started[job.job_id, attempt] = FakeHost()
        self.living.add((job.job_id, attempt))
        return host

    def find(self, job: Job, attempt: int) -> Host | None:
        return self.started[job.job_id, attempt] if (job.job_id, attempt) in self.living else None

    async def hosts(self) -> list[tuple[JobId, int]]:
        return [key for key, host in self.started.items() if not host.killed]

    def end(self, job_id: JobId, attempt: int) -> None:
        self.started[job_id, attempt].kill()

    async def loss(self, places: Sequence[Place]) -> str:
        assert list(places) == [HERE]
        return self.lost

    def launch(self, **changes: Any) -> JobId:
        request = replace(JobRequest("actor-counter", Entrypoint.from_command(["python"])), **changes)
        variables = {"FRAY_ACTOR_NAMES": '["counter"]'}
        launch = Launch(request, Environment(variables), "package", hosted=True)
        ((job_id,), _, _) = self.table.launch([launch], "", f"request {request.name}", 0.0)
        assert self.keeper is not None
        self.keeper.keep(job_id)
        return job_id

    async def host(self, job_id: JobId, attempt: int) -> FakeHost:
        """Return the host of an attempt, which has begun."""
        await until(lambda: (job_id, attempt) in self.started)
        host = self.started[job_id, attempt]
        assert self.table.begin(job_id, f"holder {attempt}", [HERE], float(attempt)) is not None
        return host


async def until(ready: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not ready():
            await asyncio.sleep(0.001)

    await asyncio.wait_for(wait(), PATIENCE)


def run(part: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(part())


def test_a_failure_is_followed_by_another_attempt_until_the_budget_is_spent() -> None:
    async def part() -> None:
        cluster = Cluster()
        job_id = cluster.launch(max_retries_failure=1)
        for attempt in (1, 2):
            (await cluster.host(job_id, attempt)).end.set_result(FAILED)
        await until(lambda: cluster.table.job(job_id).status.ended)
        job = cluster.table.job(job_id)
        assert (job.status, job.failures, job.attempt) == (JobStatus.FAILED, 2, 2)
        assert {(job_id, 1), (job_id, 2)} <= set(cluster.ended)
        assert all(host.killed for host in cluster.started.values()), "a process is left"
        assert 'actor "counter" has failed for good' in fate_of("counter", [job]).death
        assert names_of(job) == ("counter",)

    run(part)


@pytest.mark.parametrize(("lost", "state"), [("node died", TaskState.PREEMPTED), ("", TaskState.FAILED)])
def test_a_process_that_dies_failed_unless_its_node_is_gone(lost: str, state: TaskState) -> None:
    async def part() -> None:
        cluster = Cluster()
        job_id = cluster.launch(max_retries_failure=-1)
        host = await cluster.host(job_id, 1)
        cluster.lost = lost
        host.kill()
        await cluster.host(job_id, 2)
        job = cluster.table.job(job_id)
        assert job.attempts[0].outcome is state
        assert (job.failures, job.preemptions) == ((0, 1) if lost else (1, 0))

    run(part)


def test_a_preemption_that_only_the_nodes_show_ends_the_attempt() -> None:
    async def part() -> None:
        cluster = Cluster()
        job_id = cluster.launch(max_retries_failure=0)
        silent = await cluster.host(job_id, 1)
        cluster.table.lose(job_id, 1, "Ray's node died", 2.0)
        await cluster.host(job_id, 2)
        assert silent.killed, "the one on the node that was thought dead lives on"
        assert cluster.table.job(job_id).failures == 0

    run(part)


def test_the_end_of_the_registry_ends_no_actor() -> None:
    cluster: list[Cluster] = []

    async def part() -> None:
        cluster.append(Cluster())
        await cluster[0].host(cluster[0].launch(), 1)
        await asyncio.sleep(0)

    run(part)  # whose end cancels all that goes on
    (host,) = cluster[0].started.values()
    assert not host.killed, "a living actor was killed"
    assert not cluster[0].ended, "a living actor has lost its name"


def test_the_status_of_an_exit_that_was_reported_counts() -> None:
    async def part() -> None:
        cluster = Cluster()
        job_id = cluster.launch(max_retries_failure=-1)
        host = await cluster.host(job_id, 1)
        assert cluster.keeper is not None
        cluster.keeper.exiting(job_id, 1, TaskEnd(0, TaskState.SUCCEEDED, exit_code=0))
        host.kill()
        await until(lambda: cluster.table.job(job_id).status is JobStatus.SUCCEEDED)

    run(part)


def test_a_job_that_is_stopped_finishes_its_calls() -> None:
    async def part() -> None:
        cluster = Cluster()
        job_id = cluster.launch()
        host = await cluster.host(job_id, 1)
        cluster.table.stop(job_id, "stopped by a client", 2.0)
        await until(lambda: cluster.table.job(job_id).over)
        assert host.stopped
        assert "was deleted" in fate_of("counter", cluster.table).death

    run(part)


def test_a_job_that_is_stopped_while_it_waits_never_runs() -> None:
    async def part() -> None:
        cluster = Cluster()
        job_id = cluster.launch()
        await until(lambda: (job_id, 1) in cluster.started)
        cluster.table.stop(job_id, "stopped by a client", 2.0)
        await until(lambda: cluster.started[job_id, 1].killed)
        assert cluster.table.begin(job_id, "late", [HERE], 3.0) is None

    run(part)


def test_what_can_never_be_made_is_tried_once() -> None:
    async def part() -> None:
        cluster = Cluster()
        job_id = cluster.launch(max_retries_failure=-1)
        cause = Termination(TerminationCause.ACTOR_INVALID, "it has no methods")
        (await cluster.host(job_id, 1)).end.set_result(replace(FAILED, termination=cause))
        await until(lambda: cluster.table.job(job_id).status is JobStatus.FAILED)
        other = Cluster()
        unmade = other.launch(max_retries_failure=-1)
        await until(lambda: (unmade, 1) in other.started)
        other.started[unmade, 1].end.set_exception(HostUnmadeError("no module msgpack"))
        await until(lambda: other.table.job(unmade).status is JobStatus.FAILED)
        assert "no module msgpack" in other.table.job(unmade).reason

    run(part)


def test_another_process_of_the_registry_goes_on() -> None:
    async def part() -> None:
        first = Cluster()
        job_id = first.launch(max_retries_failure=-1)
        host = await first.host(job_id, 1)
        second = Cluster(list(first.table), {(job_id, 1): host})
        for _ in range(10):
            await asyncio.sleep(0)
        assert not host.killed
        assert second.table.job(job_id).attempt == 1
        host.end.set_result(FAILED)
        await second.host(job_id, 2)
        third = Cluster(list(second.table))  # the process died while there was no registry
        await third.host(job_id, 3)
        assert third.table.job(job_id).failures == 2

    run(part)


def test_a_host_that_another_process_has_left_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_LOOK", 0.01)

    async def part() -> None:
        first = Cluster()
        job_id = first.launch()
        left = await first.host(job_id, 1)
        first.table.stop(job_id, "stopped by a client", 2.0)
        first.table.drained(job_id)
        second = Cluster(list(first.table), {(job_id, 1): left, (JobId("forgotten"), 1): FakeHost()})
        running = second.launch(name="actor-other")
        wanted = await second.host(running, 1)
        await until(lambda: all(host.killed for host in second.started.values() if host is not wanted))
        assert not wanted.killed

    run(part)


def test_a_session_that_is_not_held_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_LOOK", 0.01)

    async def part() -> None:
        cluster = Cluster()
        job_id = cluster.launch(session="s")
        await cluster.host(job_id, 1)
        monkeypatch.setattr(keeper, "_SESSION", 0.05)  # not before: it must not end before it has begun
        await until(lambda: cluster.table.job(job_id).over)
        assert "the client that launched it" in cluster.table.job(job_id).reason

    run(part)


def test_a_session_outlives_a_suspension_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_SESSION", 0.5)
    monkeypatch.setattr(keeper, "_LOOK", 0.01)

    async def part() -> None:
        cluster = Cluster()
        job_id = cluster.launch(session="s")
        await cluster.host(job_id, 1)
        time.sleep(1.0)  # nothing goes on here, and no client is heard
        await asyncio.sleep(0.02)
        assert not cluster.table.job(job_id).status.ended, "its client had no chance to be heard"
        await until(lambda: cluster.table.job(job_id).over)

    run(part)


def test_a_host_that_could_not_be_started_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_AGAIN", 0.01)

    async def part() -> None:
        cluster = Cluster()
        job_id = cluster.launch(max_retries_failure=0)
        cluster.lost = ""
        await until(lambda: (job_id, 1) in cluster.started)
        first = cluster.started[job_id, 1]
        monkeypatch.setattr(cluster, "loss", nowhere)
        first.kill()
        await until(lambda: cluster.started[job_id, 1] is not first)
        await cluster.host(job_id, 1)
        assert cluster.table.job(job_id).failures == 0

    run(part)


async def nowhere(places: Sequence[Place]) -> str:
    assert not places, "it never ran"
    return ""
