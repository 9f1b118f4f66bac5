"""Actors created from code: in this process, in processes of this machine, and on a fray cluster."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from controller import TOKEN, Controller
from created import PATIENCE, Counter, Fleeting, Informed, Leader, Pretender, create_two, use
from fray.cluster import (
    ActorNotFoundError,
    AlreadyExistsError,
    ClusterError,
    JobId,
    JobStatus,
    LocalCluster,
    PickleError,
    RefusedError,
    WaitTimeoutError,
)
from fray.rpc import ActorServer, errors
from fray.v2 import (
    ActorCreationError,
    ActorGroup,
    ActorHandle,
    ActorOptions,
    ActorStatus,
    Client,
    Entrypoint,
    FrayClient,
    JobRequest,
    LocalClient,
    _hosted,
    current_client,
)
from fray.v2.client import _ClusterClient
from waiting import eventually

SAME = ActorOptions(get_if_exists=True)


class Elsewhere:
    """A LocalCluster as programs of other processes see it: actors have jobs of their own there."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.local = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self.local, name)


class Lingering(Elsewhere):
    """One whose jobs end once a client waits for that."""

    def terminate(self, job_id: JobId) -> None:
        self.local.poll(job_id)

    def wait(self, job_id: Any, *args: Any, **kwargs: Any) -> Any:
        self.local.terminate(job_id)
        return self.local.wait(job_id, *args, **kwargs)


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


@pytest.fixture
def machine() -> Iterator[tuple[LocalCluster, Client]]:
    """A machine whose actors are processes, and a client of it."""
    with LocalCluster(use_processes=True) as cluster, _ClusterClient(Elsewhere(cluster)) as client:
        yield cluster, client


def status_of(client: Client, name: str) -> ActorStatus | None:
    try:
        return client.actor_status(name)
    except ActorNotFoundError:
        return None


def test_the_life_of_an_actor(client: Client) -> None:
    counter = client.create_actor(Counter, 5, name="counter")
    assert isinstance(counter, ActorHandle)
    assert counter.name == "counter"
    assert [counter.increment(), counter.increment(2), counter.increment.remote(by=3).result()] == [6, 8, 11]
    assert client.actor_status("counter") is client.actor_status(counter) is ActorStatus.READY
    with pytest.raises(AlreadyExistsError, match='"counter"'):
        client.create_actor(Counter, name="counter")
    same = client.create_actor(Counter, name="counter", options=SAME)
    assert same == counter
    assert same.increment() == 12  # 24: state persists
    client.delete_actor(counter)
    eventually(lambda: status_of(client, "counter") is None, PATIENCE)
    with pytest.raises(ActorNotFoundError, match="counter"):
        client.delete_actor("counter")
    eventually(lambda: client.create_actor(Counter, name="counter").increment() == 1, PATIENCE)


def test_who_deletes_waits_for_the_end(
    serve: Callable[..., Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAY_CLUSTER_TOKEN", TOKEN)
    controller = serve(runs=True)

    def end() -> None:
        assert controller.awaited.wait(PATIENCE)
        controller.end()

    with FrayClient(f"fray://{controller.address}?namespace=rl") as client:
        first = client.create_actor(Counter, name="counter").pid()
        controller.lingers = True
        monkeypatch.setattr(_hosted, "_ENDING", 0.1)
        with pytest.raises(WaitTimeoutError, match=r'"counter" is to end, but job actor-counter-\d+ had not'):
            client.delete_actor("counter")
        monkeypatch.setattr(_hosted, "_ENDING", PATIENCE)
        controller.awaited.clear()
        with ThreadPoolExecutor(1) as pool:
            ending = pool.submit(end)
            client.delete_actor("counter")
            ending.result()
        controller.lingers = False
        assert client.create_actor(Counter, name="counter").pid() != first


def test_an_actor_may_delete_itself(machine: tuple[LocalCluster, Client]) -> None:
    _, client = machine
    assert client.create_actor(Fleeting, "self", name="self").delete() == "deleted"
    eventually(lambda: status_of(client, "self") is None, PATIENCE)


def test_where_its_module_is_missing_there_will_be_no_actor(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(client, LocalClient):
        pytest.skip("it has the modules of its creator")
    (tmp_path / "not_shipped.py").write_text("class Actor:\n    def act(self):\n        pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    actor = importlib.import_module("not_shipped").Actor
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(tmp_path)])
    (tmp_path / "pyproject.toml").touch()
    with pytest.raises(ActorCreationError, match=r"needs the module not_shipped.*: ship it with") as caught:
        client.create_actor(actor, name="actor")
    assert caught.value.type == ""
    assert client.create_actor(Counter, name="actor").increment() == 1, "its job was in the way"


def test_a_constructor_that_raises_is_reported_to_the_creator(client: Client, tmp_path: Path) -> None:
    with pytest.raises(ActorCreationError) as caught:
        client.create_actor(Counter, fail_if=str(tmp_path), name="bad")
    err = caught.value
    assert (err.actor, err.type, err.message) == ("bad", "ValueError", f"no such lesson: {tmp_path}")
    assert "in __init__" in err.traceback
    assert err.traceback.rstrip().endswith(f"ValueError: no such lesson: {tmp_path}")
    assert "_host" not in err.traceback, "frames of fray itself"
    assert '"bad" could not be created: ValueError: no such lesson' in str(err)
    assert status_of(client, "bad") in (None, ActorStatus.FAILED)

    def again() -> bool:
        try:
            return bool(client.create_actor(Counter, name="bad", options=SAME).increment() == 1)
        except ActorCreationError as failed:
            if failed.message != err.message:
                raise
            return False  # the one that failed has the name until it is gone

    eventually(again, PATIENCE)


def test_what_a_constructor_prints_is_no_cause() -> None:
    with LocalCluster(use_processes=True) as cluster, _ClusterClient(Elsewhere(cluster)) as client:
        with pytest.raises(ActorCreationError) as caught:
            client.create_actor(Pretender, name="pretender", options=ActorOptions(max_restarts=0))
        assert (caught.value.type, caught.value.message) == ("", "exit code 3")


def test_an_actor_that_failed_frees_its_name(tmp_path: Path) -> None:
    with LocalCluster(use_processes=True) as cluster, _ClusterClient(Lingering(cluster)) as client:
        with pytest.raises(ActorCreationError, match="no such lesson"):
            client.create_actor(Counter, fail_if=str(tmp_path), name="counter")
        assert client.create_actor(Counter, name="counter").increment() == 1
        client.delete_actor("counter")
        assert client.create_actor(Counter, name="counter").increment() == 1


def test_what_cannot_travel_is_rejected(client: Client) -> None:
    with pytest.raises(PickleError, match="lock"):
        client.create_actor(Counter, threading.Lock(), name="counter")
    counter = client.create_actor(Counter, name="counter")
    with pytest.raises(errors.EncodingError) as caught:
        counter.increment(by=threading.Lock())  # type: ignore[arg-type]
    assert (caught.value.argument, caught.value.method) == ("kwargs.by", "increment")
    assert counter.increment() == 1


def test_arguments_of_constructors_are_copies(client: Client) -> None:
    given = {"rate": 1}

    class Keeper:
        def __init__(self, settings: dict[str, int]) -> None:
            self.settings = settings

        def rate(self) -> int:
            return self.settings["rate"]

    keeper = client.create_actor(Keeper, given, name="keeper")
    given["rate"] = 2
    assert keeper.rate() == 1


def test_impossible_actors(client: Client) -> None:
    with pytest.raises(TypeError, match="makes no actors"):
        client.create_actor(Counter(), name="counter")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="count is 0"):
        client.create_actor_group(Counter, name="counter", count=0)
    with pytest.raises(ClusterError, match="name"):
        client.create_actor(Counter, name="no spaces")


def test_fact_34_a_race_yields_one_actor(client: Client) -> None:
    def create(_: int) -> int:
        handle = client.create_actor(Counter, name="counter", options=SAME)
        return int(handle.increment())

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(create, range(6))) == [1, 2, 3, 4, 5, 6]


def test_a_constructor_gets_its_context(client: Client) -> None:
    assert client.create_actor(Informed, "hello", name="informed").say().startswith("hello ")


def test_max_concurrency(client: Client, tmp_path: Path) -> None:
    counter = client.create_actor(Counter, name="counter", options=ActorOptions(max_concurrency=3))
    calls = [counter.meet.remote(str(tmp_path), 3) for _ in range(3)]
    assert all(call.result(PATIENCE) for call in calls)


def test_fact_33_a_group_is_ready_at_n_of_m(client: Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    group = client.create_actor_group(Counter, 10, gate=str(gate), name="pool", count=3)
    assert isinstance(group, ActorGroup)
    assert [handle.name for handle in group.handles] == ["pool_0", "pool_1", "pool_2"]
    assert [handle.increment(i) for i, handle in enumerate(group.wait_ready(timeout=PATIENCE))] == [
        10,
        11,
        12,
    ]
    assert len(client.cluster.metadata.lookup_all("pool")) == 3  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="4 of 3 actors can never be ready"):
        group.wait_ready(4)
    group.terminate()
    eventually(lambda: all(job.status().ended for job in group.jobs), PATIENCE)

    gate.unlink()
    late = client.create_actor_group(Counter, gate=str(gate), name="late", count=2)
    with pytest.raises(WaitTimeoutError, match="0 of 1 actors were ready"):
        late.wait_ready(1, timeout=0.2)
    assert client.actor_status("late_0") is ActorStatus.CREATING
    call = late.handles[1].increment.remote(7)  # it waits until there is one
    gate.touch()
    assert [handle.name for handle in late.wait_ready(2, timeout=PATIENCE)] == ["late_0", "late_1"]
    assert call.result(PATIENCE) == 7


def test_fact_33_waiting_ends_at_once_when_there_will_be_none(client: Client, tmp_path: Path) -> None:
    group = client.create_actor_group(Counter, fail_if=str(tmp_path), name="bad", count=2)
    assert group.wait_ready(0) == []
    with pytest.raises(ActorCreationError, match="no such lesson"):
        group.wait_ready(1)
    gated = client.create_actor_group(Counter, gate=str(tmp_path / "never"), name="gated", count=2)
    gated.jobs[0].terminate()
    with pytest.raises(ActorCreationError, match='"gated_0" could not be created'):
        gated.wait_ready()


def test_fact_32_handles_work_in_jobs(client: Client) -> None:
    counter = client.create_actor(Counter, name="counter")
    job = client.submit(JobRequest("user", Entrypoint.from_callable(use, args=(counter, 21))))
    assert job.wait(PATIENCE) is JobStatus.SUCCEEDED
    assert counter.increment(0) == 42


@pytest.mark.parametrize("use_processes", [False, True])
def test_lifetimes(tmp_path: Path, use_processes: bool) -> None:
    cluster = LocalCluster(use_processes=use_processes)
    with cluster, _ClusterClient(cluster) as client:
        call = Entrypoint.from_callable(create_two, args=(str(tmp_path / "r"),))
        job = client.submit(JobRequest("creator", call))
        assert job.wait(PATIENCE) is JobStatus.SUCCEEDED
        assert (tmp_path / "r").exists()
        eventually(lambda: status_of(client, "goes") is None, PATIENCE)
        assert client.actor_status("stays") is ActorStatus.READY
        assert client.create_actor(Counter, name="stays", options=SAME).increment() == 2
        client.delete_actor("stays")
        eventually(lambda: status_of(client, "stays") is None, PATIENCE)


def test_an_attempt_that_is_made_again_creates_its_actors_again(tmp_path: Path) -> None:
    tried = tmp_path / "tried"

    def work() -> None:
        assert current_client().create_actor(Counter, name="mine").increment() == 1
        if not tried.exists():
            tried.touch()
            raise RuntimeError("once more")

    with LocalClient() as client:
        job = client.submit(JobRequest("work", Entrypoint.from_callable(work), max_retries_failure=1))
        assert job.wait(PATIENCE) is JobStatus.SUCCEEDED


def test_shutdown_ends_what_was_created(machine: tuple[LocalCluster, Client]) -> None:
    cluster, client = machine
    client.create_actor(Counter, name="goes")
    stays = client.create_actor(Counter, name="stays", options=ActorOptions(lifetime="detached"))
    client.shutdown()
    assert [job.name for job in cluster.list_jobs() if not job.status.ended] == ["actor-stays"]
    assert stays.increment() == 1
    with pytest.raises(RuntimeError, match="shut down"):
        client.create_actor(Counter, name="another")


def test_actors_create_actors_and_jobs(client: Client) -> None:
    leader = client.create_actor(Leader, name="leader")
    assert leader.lead() == 42
    assert client.create_actor(Counter, name="more", options=SAME).increment() == 3


def test_actors_of_others_are_not_deleted(client: Client) -> None:
    if not isinstance(client, LocalClient):
        pytest.skip("it is registered in this process")
    with ActorServer(client.cluster) as server:
        server.register("theirs", Counter())
        assert client.actor_status("theirs") is ActorStatus.READY
        with pytest.raises(RefusedError, match='"theirs" was not created by create_actor'):
            client.delete_actor("theirs")


def test_hosts_take_no_workers() -> None:
    with LocalCluster(max_workers=1, use_processes=True) as cluster:
        client = _ClusterClient(Elsewhere(cluster))
        handles = client.create_actor_group(Counter, name="pool", count=3).wait_ready(timeout=PATIENCE)
        job = client.submit(JobRequest("user", Entrypoint.from_callable(use, args=(handles[2], 1))))
        assert job.wait(PATIENCE) is JobStatus.SUCCEEDED


def test_a_hundred_actors_in_one_process() -> None:
    with LocalClient() as client:
        handles = [client.create_actor(Counter, i, name=f"counter-{i}") for i in range(120)]
        calls = [handle.increment.remote() for handle in handles]
        assert [call.result(PATIENCE) for call in calls] == list(range(1, 121))
