"""Actors on a real Iris: checks 12 and 13 of the facts measured on it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from fray.cluster import ActorNotFoundError, AlreadyExistsError, Entrypoint, NotFoundError
from fray.cluster.iris import IrisCluster
from fray.rpc.errors import ActorDeadError, ActorDiedError, MaybeExecutedError
from fray.v2 import ActorCreationError, ActorOptions, ActorStatus, JobRequest, JobStatus
from fray.v2.iris_backend import FrayIrisClient
from iris_process import Iris
from waiting import eventually

Flag = Callable[[str], Path]


def counter(path: str = "") -> type:
    """Return a class that tasks know by value."""

    class Counter:
        def __init__(self, n: int = 0) -> None:
            if path:
                with Path(path).open("a") as file:
                    file.write("made\n")
            self.n = n

        def add(self, k: int = 1) -> int:
            self.n += k
            return self.n

        def process(self) -> tuple[int, str]:
            return os.getpid(), os.environ["FRAY_ATTEMPT"]

        def wait_for(self, go: str) -> None:
            import time

            Path(f"{go}.called").touch()
            while not Path(go).exists():
                time.sleep(0.05)

    return Counter


def test_iris_12_actor(client: FrayIrisClient, cluster: IrisCluster) -> None:
    actor = client.create_actor(counter(), 10, name="counter")
    assert actor.add(2) == 12
    assert actor.add.remote(3).result() == 15
    (endpoint,) = cluster.metadata.lookup_all("counter")
    assert endpoint.job_id == f"/{cluster.spec.user}/actor-counter"
    assert endpoint.actor_id.startswith("actor-")
    assert len(endpoint.metadata["fray.fingerprint"]) == 64

    def use(given: object) -> None:
        from fray.v2 import get_actor

        print(given.add(100), get_actor("counter").add(1000))  # type: ignore[attr-defined]

    client.submit(JobRequest("use", Entrypoint.from_callable(use, [actor]))).wait(timeout=300)
    assert actor.add(0) == 1115
    client.delete_actor("counter")
    with pytest.raises(ActorNotFoundError):
        cluster.metadata.lookup("counter")


def test_iris_12_constructor_fails(client: FrayIrisClient, cluster: IrisCluster) -> None:
    class Broken:
        def __init__(self) -> None:
            raise ValueError("no weights here")

        def run(self) -> None: ...

    with pytest.raises(ActorCreationError) as raised:
        client.create_actor(Broken, name="broken", options=ActorOptions(max_restarts=5))
    assert (raised.value.type, raised.value.message) == ("ValueError", "no weights here")
    assert "in __init__" in raised.value.traceback
    eventually(lambda: all(job.status.ended for job in cluster.list_jobs()))


def test_iris_12_one_of_a_name(client: FrayIrisClient) -> None:
    kind = counter()
    first = client.create_actor(kind, name="one")
    first.add(5)
    with pytest.raises(AlreadyExistsError):
        client.create_actor(kind, name="one")
    found: list[int] = []

    def get() -> None:
        options = ActorOptions(get_if_exists=True)
        found.append(client.create_actor(kind, name="one", options=options).add(0))

    threads = [threading.Thread(target=get) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert found == [5] * 4

    # Also from a job, whose children have other names in Iris.
    def child() -> None:
        from fray.cluster import AlreadyExistsError
        from fray.v2 import ActorOptions, current_client

        try:
            current_client().create_actor(kind, name="one")
        except AlreadyExistsError:
            pass
        else:
            raise AssertionError("there are two")
        assert (
            current_client().create_actor(kind, name="one", options=ActorOptions(get_if_exists=True)).add(1)
            == 6
        )

    assert (
        client.submit(JobRequest("parent", Entrypoint.from_callable(child))).wait(timeout=300)
        is JobStatus.SUCCEEDED
    )


def test_iris_12_group(client: FrayIrisClient) -> None:
    group = client.create_actor_group(counter(), 7, name="pool", count=3)
    assert [handle.add(i) for i, handle in enumerate(group.wait_ready(timeout=300))] == [7, 8, 9]
    assert len(client.cluster.metadata.lookup_all("pool")) == 3
    group.terminate()
    eventually(lambda: not client.cluster.metadata.lookup_all("pool"))


def test_iris_12_lease_is_renewed(client: FrayIrisClient, iris: Iris) -> None:
    if iris.is_june:
        pytest.skip("endpoints have no leases in the release of June")
    iris.ask("leases", seconds=3.0)
    kind = counter()

    class Short(kind):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            import fray.cluster.iris.metadata

            super().__init__()
            vars(fray.cluster.iris.metadata)["LEASE"] = 3.0

    actor = client.create_actor(Short, name="short")
    name = f"/fray/{client.cluster.namespace}/short"
    (first,) = iris.ask("deadline", name=name)
    # Without renewals the lease would be over twice by then.
    eventually(lambda: iris.ask("deadline", name=name)[0] > first + 6000)
    assert actor.add() == 1
    pid, _ = actor.process()
    os.kill(pid, 9)
    eventually(lambda: not client.cluster.metadata.lookup_all("short"))


@pytest.mark.short
def test_iris_13_restart(client: FrayIrisClient, cluster: IrisCluster, flag: Flag) -> None:
    made = flag("made")
    actor = client.create_actor(counter(str(made)), 10, name="counter", options=ActorOptions(max_restarts=1))
    assert actor.add(5) == 15
    (before,) = cluster.metadata.lookup_all("counter")
    pid, attempt = actor.process()
    assert attempt == "1"
    future = actor.wait_for.remote(str(flag("never")))
    eventually(Path(f"{flag('never')}.called").exists)
    os.kill(pid, 9)
    with pytest.raises(MaybeExecutedError, match="may have run"):
        future.result(timeout=300)
    assert actor.add(1) == 11  # without its state
    (after,) = cluster.metadata.lookup_all("counter")
    assert after.actor_id != before.actor_id
    assert made.read_text().split() == ["made", "made"]
    pid, attempt = actor.process()
    assert attempt == "2"
    os.kill(pid, 9)
    with pytest.raises((ActorDiedError, ActorDeadError), match="failed for good"):
        actor.add(1)
    eventually(lambda: client.actor_status("counter") is ActorStatus.FAILED)


def test_iris_13_preempted_actor(client: FrayIrisClient, cluster: IrisCluster, iris: Iris) -> None:
    actor = client.create_actor(counter(), 10, name="counter")  # which may not fail once
    actor.add(5)
    job_id = f"/{cluster.spec.user}/actor-counter"
    iris.preempt(f"{job_id}/0")

    def restarted() -> bool:
        try:
            return bool(actor.process()[1] == "2")
        except MaybeExecutedError:  # by the process that Iris ends meanwhile
            return False

    eventually(restarted)
    assert actor.add(1) == 11
    info = cluster.poll(job_id)  # type: ignore[arg-type]
    assert (info.preemptions, info.failures) == (1, 0)


def test_iris_13_kill(client: FrayIrisClient) -> None:
    client.create_actor(counter(), name="counter")
    client.kill("counter")
    with pytest.raises(NotFoundError):
        client.get_actor("counter").add()


def test_iris_12_current_client(iris: Iris, cluster: IrisCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    from fray.v2 import client as clients
    from fray.v2 import current_client

    monkeypatch.setenv(
        "FRAY_CLIENT_SPEC", f"iris://{iris.url.removeprefix('http://')}?user={cluster.spec.user}"
    )
    clients._client_of.cache_clear()
    found = current_client()
    assert isinstance(found, FrayIrisClient)
    assert found.create_actor(counter(), 1, name="mine").add() == 2
    found.shutdown()
    assert all(job.status is JobStatus.STOPPED for job in cluster.list_jobs())
    assert isinstance(found.cluster, IrisCluster)
    found.cluster.close()
    clients._client_of.cache_clear()
