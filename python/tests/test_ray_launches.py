"""What becomes of launches and of output when the registry's process ends, or Ray fails. Without Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from fray.cluster import Entrypoint, JobId, JobRequest, JobStatus, Namespace
from fray.cluster.errors import ClusterUnavailableError
from fray.cluster.ray import places, sharing
from fray.cluster.ray.job_table import JobTable
from fray.cluster.ray.journal import Journal
from fray.cluster.ray.logs import MAX_JOB, LogTable
from fray.cluster.ray.output import Shipping
from fray.cluster.ray.records import Environment, Launch, Shared
from fray.cluster.ray.sharing import SharedGroups

PATIENCE = 300.0
JOB = JobId("job-1")


class Killed(BaseException):
    """The process of the registry is killed."""


class MemoryStore:
    """A store that outlives the process, which may be killed as it writes."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], bytes] = {}
        self.left: float = float("inf")

    def _changing(self) -> None:
        if self.left <= 0:
            raise Killed
        self.left -= 1

    def put(self, kind: str, name: str, value: bytes) -> None:
        self._changing()
        self.values[kind, name] = value

    def get(self, kind: str, name: str) -> bytes | None:
        return self.values.get((kind, name))

    def delete(self, kind: str, name: str) -> None:
        self._changing()
        self.values.pop((kind, name), None)

    def names(self, kind: str) -> list[str]:
        return sorted(name for of, name in self.values if of == kind)


def launch(name: str) -> Launch:
    return Launch(JobRequest(name, Entrypoint.from_command(["true"])), Environment(), "package")


def begun(store: Any) -> JobTable:
    """Return the table of a process of the registry that begins."""
    journal = Journal(store)
    table = JobTable(Namespace("rl"), journal.put, journal.together)
    table.load(journal.jobs())
    return table


LAUNCHES = [launch("one"), launch("two"), launch("three")]


@pytest.mark.parametrize("writes", range(6))
def test_a_group_is_launched_whole_or_not_at_all(writes: int) -> None:
    store = MemoryStore()
    store.left = writes
    try:
        begun(store).launch(LAUNCHES, "group", "request", 1.0)
    except Killed:
        assert writes < 5
    else:
        assert writes == 5
    for again in range(5):  # the next process may be killed too
        store.left = again
        try:
            begun(store)
        except Killed:
            continue
    store.left = float("inf")
    table = begun(store)
    assert len(list(table)) == (3 if writes else 0)
    assert store.names("launch") == []
    ids, new, _ = table.launch(LAUNCHES, "group", "request", 2.0)  # the client, which was not answered
    assert len(set(ids)) == 3
    assert len(new) == (0 if writes else 3)
    jobs = [table.job(job_id) for job_id in ids]
    assert [job.launch.request.name for job in jobs] == ["one", "two", "three"]
    assert [job.shared.first for job in jobs if job.shared] == [0, 1, 2]


def test_a_job_alone_is_written_once() -> None:
    store = MemoryStore()
    store.left = 1
    begun(store).launch([launch("one")], "", "request", 1.0)
    assert len(list(begun(store))) == 1


def test_a_change_after_a_launch_is_not_undone() -> None:
    store = MemoryStore()
    store.left = 3  # of the launch itself, and of two jobs
    table = begun(store)
    with pytest.raises(Killed):
        table.launch(LAUNCHES, "group", "request", 1.0)
    store.left = float("inf")
    first = next(iter(begun(store)))
    table = begun(store)
    table.stop(first.job_id, "by a client", 2.0)
    assert begun(store).job(first.job_id).status is JobStatus.STOPPED


class Groups:
    """A table with a group of two jobs, and a Ray that makes placement groups as the test has it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.problems: list[Exception] = []
        self.made: list[str] = []
        monkeypatch.setattr(sharing, "_AGAIN", 0.0)
        monkeypatch.setattr(places, "make_shared", self._make)
        self.table = JobTable(Namespace("rl"), lambda _: None)
        _, self.jobs, _ = self.table.launch(LAUNCHES[:2], "group", "request", 1.0)
        self.groups = SharedGroups(None, self.table)

    def _make(self, _ray: object, name: str, demands: Sequence[object]) -> None:
        assert len(demands) == 2
        if self.problems:
            raise self.problems.pop(0) if len(self.problems) > 1 else self.problems[0]
        self.made.append(name)


async def until(ready: Callable[[], object]) -> None:
    async def wait() -> None:
        while not ready():
            await asyncio.sleep(0)

    await asyncio.wait_for(wait(), PATIENCE)


def test_a_group_that_ray_does_not_make_is_made_again_and_its_jobs_say_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def part() -> None:
        ray = Groups(monkeypatch)
        ray.problems = [RuntimeError("the GCS restarts")]
        assert ray.groups.reasons(ray.jobs[0]) == ()
        making = asyncio.ensure_future(ray.groups.make(ray.jobs))
        await until(lambda: ray.groups.reasons(ray.jobs[0]))
        for job in ray.jobs:
            (reason,) = ray.groups.reasons(job)
            assert reason.endswith("which is tried again: RuntimeError: the GCS restarts")
        ray.problems.clear()
        await making
        assert ray.made == [ray.jobs[0].shared.name if ray.jobs[0].shared else ""]
        assert ray.groups.reasons(ray.jobs[0]) == ()

    asyncio.run(part())


def test_a_group_is_not_made_for_jobs_that_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def part() -> None:
        ray = Groups(monkeypatch)
        ray.problems = [RuntimeError("the GCS restarts")]
        making = asyncio.ensure_future(ray.groups.make(ray.jobs))
        await until(lambda: ray.groups.reasons(ray.jobs[0]))
        for job in ray.jobs:
            ray.table.stop(job.job_id, "by a client", 2.0)
        await making
        assert ray.made == []
        assert ray.groups.reasons(ray.jobs[0]) == ()

    asyncio.run(part())


def test_a_gang_waits_for_the_group_that_the_registry_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_LOOK", 0.0)
    problems = iter([ValueError("there is none"), ValueError("there is none")])

    def get(_name: str) -> object:
        if (problem := next(problems, None)) is not None:
            raise problem
        return SimpleNamespace(wait=lambda _: True)

    ray = SimpleNamespace(util=SimpleNamespace(get_placement_group=get))
    demand: Any = SimpleNamespace(tasks=2, tpu="")
    found = places.SharedPlaces(ray, Shared("group", 3), demand).reserve(lambda: True)
    assert [each.bundle for each in found or []] == [3, 4]
    none = SimpleNamespace(util=SimpleNamespace(get_placement_group=lambda _: 1 / 0))
    assert places.SharedPlaces(none, Shared("group", 3), demand).reserve(lambda: False) is None


def written(table: LogTable) -> bytes:
    return b"".join(chunk.data for chunk in table.after(JOB, 0))


def test_what_is_written_again_is_kept_once() -> None:
    store: Any = MemoryStore()
    table = LogTable(store)
    table.write(JOB, 1, 0, 0, b"one\n")
    table.write(JOB, 1, 0, 0, b"one\n")  # as its answer was lost
    table.write(JOB, 1, 1, 0, b"of another task\n")
    table = LogTable(store)  # of the next process
    table.write(JOB, 1, 0, 0, b"one\ntwo\n")  # of which a part is there
    table.write(JOB, 1, 0, 4, b"two\n")
    table.write(JOB, 2, 0, 0, b"one\n")  # of the next attempt
    table.write(JOB, 2, 0, 100, b"after a gap\n")
    assert written(table) == b"one\nof another task\ntwo\none\nafter a gap\n"
    table.drop(JOB)
    table.write(JOB, 1, 0, 0, b"one\n")
    assert written(table) == b"one\n"


def test_what_is_written_again_is_known_after_the_oldest_was_dropped() -> None:
    store: Any = MemoryStore()
    table = LogTable(store)
    part = b"x" * (MAX_JOB // 2)
    for start in (0, len(part), 2 * len(part)):
        table.write(JOB, 1, 0, start, part)
    table.write(JOB, 1, 0, 2 * len(part), part)
    assert [chunk.start for chunk in LogTable(store).after(JOB, 0)] == [len(part), 2 * len(part)]


def test_what_is_shipped_has_its_place_whatever_was_lost() -> None:
    """A registry that is away for a while misses a part; what comes after it has its own place."""
    sent: list[tuple[int, bytes]] = []
    failing = iter([True, False])

    def call(method: str, _job: JobId, _attempt: int, _task: int, start: int, data: bytes) -> bool:
        assert method == "write_log"
        sent.append((start, data))
        if next(failing, False):
            raise ClusterUnavailableError("Ray", 1, 1.0, "away")
        return True

    calls: Any = SimpleNamespace(call=call)
    shipping = Shipping(calls, JOB, 1, 0)
    shipping.write(b"lost\n")
    shipping.write(b"kept\n")
    shipping.write(b"z" * (300 << 10))
    shipping.close()
    assert b"".join(data for _, data in sent) == b"lost\nkept\n" + b"z" * (300 << 10)
    ends = [start + len(data) for start, data in sent]
    assert [start for start, _ in sent] == [0, *ends[:-1]]
