"""What goes on although Ray, or a disk, fails for a while; and what only their user may read. Without Ray."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fray.cluster import Entrypoint, JobRequest, NameClash, Namespace, TaskState
from fray.cluster.ray import places, reach, registry, task
from fray.cluster.ray.actors import session
from fray.cluster.ray.actors.session import RaySession
from fray.cluster.ray.calls import Calls
from fray.cluster.ray.job_table import JobTable
from fray.cluster.ray.nodes import Node
from fray.cluster.ray.private import write_private
from fray.cluster.ray.reach import Reach
from fray.cluster.ray.records import Environment, Job, Launch, Place, Started, TaskEnd
from fray.cluster.ray.store import Store

HERE = Place("node-1", "10.0.0.1")
PATIENCE = 300.0


class KeyValues:
    """Ray's key-value store."""

    def __init__(self) -> None:
        self.all: dict[str, bytes] = {}

    def _internal_kv_put(self, key: str, value: bytes, overwrite: bool, namespace: bytes) -> None:
        assert overwrite
        assert namespace == b"fray"
        self.all[key] = value

    def _internal_kv_get(self, key: str, namespace: bytes) -> bytes | None:
        assert namespace == b"fray"
        return self.all.get(key)

    def _internal_kv_del(self, key: str, namespace: bytes) -> None:
        assert namespace == b"fray"
        self.all.pop(key, None)

    def _internal_kv_list(self, prefix: str, namespace: bytes) -> list[bytes]:
        assert namespace == b"fray"
        return [key.encode() for key in self.all if key.startswith(prefix)]


class Exceptions:
    """Those of Ray that the registry tells apart."""

    class RayError(Exception):
        """Of Ray."""

    class ActorDiedError(RayError):
        """It died."""

    class ActorUnavailableError(RayError):
        """The network is away."""


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a module ray with a key-value store, without actors."""

    def none(*_: object, **__: object) -> None:
        raise ValueError("there is none")

    module: Any = ModuleType("ray")
    module.exceptions = Exceptions
    module.get_actor = none
    module.remote = lambda _: None
    module.util = SimpleNamespace(get_placement_group=none)
    experimental: Any = ModuleType("ray.experimental")
    experimental.internal_kv = KeyValues()
    monkeypatch.setitem(sys.modules, "ray", module)
    monkeypatch.setitem(sys.modules, "ray.experimental", experimental)
    return module


def launch(name: str = "job", **options: Any) -> Launch:
    return Launch(JobRequest(name, Entrypoint.from_command(["true"]), **options), Environment(), "package")


def running(found: registry.Registry) -> Job:
    (job_id,), _, _ = found._jobs.launch([launch()], "", "request", 0.0)
    assert found._jobs.begin(job_id, "holder", [HERE], 1.0) is not None
    return found._jobs.job(job_id)


async def until(ready: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not ready():
            await asyncio.sleep(0.001)

    await asyncio.wait_for(wait(), PATIENCE)


def test_nodes_are_watched_on_after_a_reading_has_failed(ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    readings: Iterator[dict[str, Node] | Exception] = iter(
        [RuntimeError("the GCS restarts"), {"node-1": Node("node-1", False, "10.0.0.1")}]
    )

    def read() -> dict[str, Node]:
        found = next(readings)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr("fray.cluster.ray.nodes.read", read)
    monkeypatch.setattr(registry, "_LOOK", 0.0)

    async def part() -> None:
        assert ray
        found = registry.Registry("rl", "package", "fray-registry")
        found._loaded = True
        job = running(found)
        watching = asyncio.ensure_future(found._watch_nodes())
        await until(lambda: found._jobs.job(job.job_id).preemptions == 1)
        watching.cancel()

    asyncio.run(part())


@pytest.mark.parametrize("problem", [Exceptions.RayError("system error"), RuntimeError("of the supervisor")])
def test_a_job_that_is_stopped_ends_whatever_its_supervisor_answers(ray: Any, problem: Exception) -> None:
    async def failed() -> bytes:
        raise problem

    handle = SimpleNamespace(
        call=SimpleNamespace(remote=lambda *_: failed()), leave=SimpleNamespace(remote=failed)
    )
    ray.get_actor = lambda *_, **__: handle
    ray.kill = lambda *_, **__: None

    async def part() -> None:
        found = registry.Registry("rl", "package", "fray-registry")
        job = running(found)
        draining = found._jobs.stop(job.job_id, "by a client", 2.0)
        assert not draining.over
        await found._end_supervisor(draining)
        assert found._jobs.job(job.job_id).over

    asyncio.run(part())


def test_placement_groups_that_cannot_be_removed_are_reported(ray: Any) -> None:
    removed: list[str] = []
    gone = iter([False, True])

    def remove(name: str) -> None:
        if not next(gone):
            raise RuntimeError("the GCS restarts")
        removed.append(name)

    ray.util = SimpleNamespace(get_placement_group=lambda name: name, remove_placement_group=remove)
    assert not places.remove(ray, ["first", "second"])
    assert removed == ["second"]


def test_a_namespace_within_the_name_of_another_keeps_its_values(ray: Any) -> None:
    assert ray
    outer, inner = Store("team"), Store("team/job")
    inner.put("blob", "x", b"inner")
    assert outer.names("job") == []
    outer.put("job", "x", b"outer")
    assert inner.names("blob") == ["x"]
    assert inner.get("blob", "x") == b"inner"


def test_a_group_that_is_asked_for_again_has_the_same_order() -> None:
    kept: dict[str, Job] = {}
    names = ["z", "kept", "a"]
    launches = [launch(name, name_clash=NameClash.KEEP) for name in names]

    def table() -> JobTable:
        made = JobTable(Namespace("rl"), lambda job: kept.update({job.job_id: job}))
        made.load(kept[job_id] for job_id in sorted(kept))
        return made

    table().launch([launches[1]], "", "of another", 0.0)
    first, new, _ = table().launch(launches, "group", "request", 1.0)
    assert len(new) == 2
    again, new, _ = table().launch(launches, "group", "request", 2.0)
    assert (again, new) == (first, [])


def end_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception | None = None) -> TaskEnd:
    """Run a task whose set-up fails."""

    def prepare(_job: Job, _started: Started, directory: Path, *_: object) -> None:
        assert directory.stat().st_mode & 0o777 == 0o700, "others may read the callable"
        if problem is not None:
            raise problem

    monkeypatch.setenv("FRAY_RAY_HOME", str(tmp_path))
    monkeypatch.setattr(task, "prepare", prepare)
    jobs = JobTable(Namespace("rl"), lambda _: None)
    ((job_id,), _, _) = jobs.launch([launch()], "", "request", 0.0)
    calls: Any = SimpleNamespace(call=lambda *_: True)
    return task.Task(jobs.job(job_id), Started(1, Environment()), 0, [HERE], calls).run()


def test_a_set_up_that_fails_for_another_reason_ends_the_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = end_of(tmp_path, monkeypatch, OSError(28, "No space left on device"))
    assert end.state is TaskState.FAILED
    assert end.reason == "set-up failed: OSError: [Errno 28] No space left on device"
    assert not list((tmp_path / "tasks").iterdir())


def test_a_directory_that_cannot_be_made_ends_the_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tasks").touch()
    end = end_of(tmp_path, monkeypatch)
    assert end.state is TaskState.FAILED
    assert end.reason.startswith("set-up failed: ")


def test_an_identity_is_for_its_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Cluster:
        @classmethod
        def from_spec(cls, _spec: str) -> Any:
            return cls()

        def reach(self) -> Reach:
            return Reach("10.0.0.1", 7000, "token", "f" * 64, "rl")

        def identity(self) -> bytes:
            return b"a private key"

    monkeypatch.setattr("fray.cluster.ray.cluster.RayCluster", Cluster)
    file = tmp_path / "identity.pem"
    file.touch(mode=0o644)
    assert reach.main(["ray:auto", "--remote", str(file)]) == 0
    assert "FRAY_ACTOR_IDENTITY" in capsys.readouterr().out
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"a private key", 0o600)


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(OSError, match="there"):
        write_private(tmp_path / "there", b"x")
    assert [each.name for each in tmp_path.iterdir()] == ["there"]


def test_a_program_that_ends_does_not_wait_for_a_registry_that_is_away(
    ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray.is_initialized = lambda: True
    names = ("RayActorError", "GetTimeoutError", "RaySystemError", "RpcError")
    ray.exceptions = SimpleNamespace(**dict.fromkeys(names, Exceptions.RayError))
    monkeypatch.setattr(session, "_LAST", 0.0)
    monkeypatch.setattr(RaySession, "_hold", lambda _: None)

    def find() -> None:
        asked.append(True)
        raise ValueError("there is no registry")

    asked: list[bool] = []
    RaySession(Calls(find, "Ray", timeout=1e9)).close()
    assert asked == [True]
