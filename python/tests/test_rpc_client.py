"""Handles and futures, with actors in real processes. Numbers are those of facts about such systems."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import cloudpickle
import pytest

from fray.cluster import (
    ActorNotFoundError,
    Entrypoint,
    JobId,
    JobRequest,
    LocalCluster,
    LocalResolver,
    job_context,
)
from fray.rpc import (
    ActorHandle,
    FixedResolver,
    RpcClient,
    RpcOptions,
)
from fray.rpc.errors import (
    ActorError,
    ApplicationError,
    BadArgumentsError,
    EncodingError,
    MaybeExecutedError,
    TooLargeError,
    UnavailableError,
    UnknownMethodError,
)
from hosted import Counter, host
from scripted import Scripted
from waiting import eventually


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    for name in [name for name in os.environ if name.startswith("FRAY_")]:
        del os.environ[name]
    with LocalCluster(max_workers=16, use_processes=True) as cluster:
        yield cluster


@pytest.fixture
def hosted(cluster: LocalCluster) -> Iterator[Callable[..., JobId]]:
    """Host counters under names, each in a process of its own that is started again whenever it fails."""
    jobs = []

    def start(*names: str, job: str = "host") -> JobId:
        request = JobRequest(
            name=job, entrypoint=Entrypoint.from_callable(host, args=names), max_retries_failure=20
        )
        jobs.append(cluster.launch(request))
        return jobs[-1]

    yield start
    for job in jobs:
        cluster.terminate(job)
    cluster.wait(jobs)


@pytest.fixture
def counter(cluster: LocalCluster, hosted: Callable[..., JobId]) -> ActorHandle:
    return LocalResolver(cluster).wait_for_actor("counter", job_id=hosted("counter"))


def test_state_persists_and_is_reset_by_a_restart(counter: ActorHandle) -> None:  # 24, 28, 30
    assert [counter.increment(2), counter.increment(by=3)] == [2, 5]
    before = counter.actor_id
    with pytest.raises(MaybeExecutedError) as caught:
        counter.die()
    assert caught.value.ran
    assert counter.increment() == 1
    assert counter.actor_id != before


def test_an_idempotent_method_is_sent_again(counter: ActorHandle, tmp_path: Path) -> None:
    assert counter.increment() == 1
    eventually(lambda: counter["pid_after"]._route.idempotent, 300)
    assert counter.pid_after(str(tmp_path / "died")) != 0
    assert counter.increment() == 1


def test_order_also_through_handles_created_again(cluster: LocalCluster, counter: ActorHandle) -> None:  # 25
    futures = []
    for i in range(500):
        again = LocalResolver(cluster).lookup("counter") if i % 3 else pickle.loads(pickle.dumps(counter))
        futures.append(again.increment.remote(i))
    for future in futures:
        future.result(300)
    assert counter.seen() == list(range(500))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda h: h.increment(1, 2, 3), BadArgumentsError, "counter.increment: takes"),
        (lambda h: h.increment(1, b=2), BadArgumentsError, 'unexpected argument "b"'),
        (lambda h: h.same(), BadArgumentsError, "takes 1 argument, got 0"),
        (lambda h: h.incremnt(), UnknownMethodError, 'no method "incremnt"; did you mean increment?'),
        (lambda h: h["_hidden"](), UnknownMethodError, "underscore names are not callable"),
        (lambda h: h._hidden(), AttributeError, "underscore names such as '_hidden' are not callable"),
        (lambda h: h.increment({1}), EncodingError, r"counter.increment: args\[0\]: a set is carried by no"),
        (lambda h: h.increment(by=[object()]), EncodingError, r"kwargs.by\[0\]"),
        (
            lambda h: h.same(bytes((1 << 30) + 1)),
            TooLargeError,
            r"counter.same: the arguments are 1\.1 GiB; at most 1 GiB",
        ),
    ],
)
def test_mistakes_run_nothing(
    counter: ActorHandle, call: Callable[[ActorHandle], object], kind: type[Exception], message: str
) -> None:  # 26
    with pytest.raises(kind, match=message) as caught:
        call(counter)
    if isinstance(caught.value, ActorError):
        assert not caught.value.ran
        assert caught.value.actor == "counter"
        assert caught.value.method
    assert counter.increment() == 1


def test_exceptions_of_the_method(counter: ActorHandle) -> None:  # 27
    counter.increment()
    with pytest.raises(ApplicationError, match=r"counter.boom: ValueError: no such lesson") as caught:
        counter.boom()
    err = caught.value
    assert err.type == "ValueError"
    assert "in boom" in err.traceback
    assert "ValueError: no such lesson" in err.traceback
    assert err.ran
    assert err.cause is not None
    assert err.cause.type == "KeyError"
    assert isinstance(err, ValueError)
    assert "in boom" in str(err.__cause__)
    again = pickle.loads(pickle.dumps(err))
    assert (str(again), again.traceback, again.cause.type) == (str(err), err.traceback, "KeyError")
    assert isinstance(counter.boom.remote().exception(300), ApplicationError)
    assert counter.increment() == 2


def test_handles_travel(cluster: LocalCluster, counter: ActorHandle) -> None:  # 32
    copy = pickle.loads(cloudpickle.dumps(counter.options(timeout=30)))
    assert copy == counter
    assert hash(copy) == hash(counter)
    assert copy.increment() == 1
    itself = counter.itself()
    assert isinstance(itself, ActorHandle)
    assert itself == counter
    assert itself.increment() == 2

    def job(handle: ActorHandle) -> None:
        handle.increment(40)

    job_id = cluster.launch(
        JobRequest(name="caller", entrypoint=Entrypoint.from_callable(job, args=(counter,)))
    )
    cluster.wait(job_id, raise_on_failure=True)
    assert counter.increment() == 43


def test_handle_as_an_argument(
    cluster: LocalCluster, counter: ActorHandle, hosted: Callable[..., JobId]
) -> None:
    other = LocalResolver(cluster).wait_for_actor("other", job_id=hosted("other", job="second"))
    assert other.by_handle(counter, 7) == 7
    assert counter.increment() == 8


def test_handle_in_a_process_that_knows_no_cluster(counter: ActorHandle) -> None:
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).increment(5))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(counter),
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert (done.stdout.strip(), done.returncode) == (b"5", 0), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_handle_after_a_fork(counter: ActorHandle) -> None:
    assert counter.increment() == 1
    child = os.fork()
    if child == 0:
        try:
            os._exit(40 + counter.increment())
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    assert counter.increment() == 3


def test_futures(counter: ActorHandle) -> None:
    future = counter.increment.remote(2)
    assert future.result(300) == 2
    assert future.result() == 2
    assert future.done()
    assert future.exception() is None
    assert not future.cancel()
    called = threading.Event()
    got = []
    future.add_done_callback(lambda f: got.append(f.result()))
    counter.increment.remote(3).add_done_callback(lambda f: got.append(f.result()))
    counter.increment.remote(0).add_done_callback(lambda _: called.set())
    assert called.wait(300)
    assert got == [2, 5]

    # A callback may call actors, also while as many calls wait as may.
    chained: concurrent.futures.Future[int] = concurrent.futures.Future()
    counter.increment.remote().add_done_callback(lambda f: chained.set_result(counter.increment(f.result())))
    assert chained.result(300) == 12


def test_awaiting(counter: ActorHandle) -> None:
    async def main() -> list[int]:
        first = await counter.increment.remote()
        more = await asyncio.gather(*(counter.increment.remote() for _ in range(200)))
        with pytest.raises(ApplicationError):
            await counter.boom.remote()
        return [first, *more]

    assert asyncio.run(main()) == list(range(1, 202))


def test_cancelling_a_task_cancels_the_call() -> None:
    with Scripted(lambda _server, _call: None) as server:
        handle = FixedResolver(server.address).handle("counter")

        async def main() -> None:
            task = asyncio.create_task(asyncio.wait_for(handle.increment.remote(), 300))
            while not server.calls:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        server.wait(lambda: server.cancelled == [1])


def test_result_waits_no_longer_than_its_timeout() -> None:
    with Scripted(lambda _server, _call: None) as server:
        future = FixedResolver(server.address).handle("counter").increment.remote()
        with pytest.raises(TimeoutError, match=r"counter.increment has not returned within 0.05 s"):
            future.result(0.05)
        assert not future.done()


def test_large_arguments_and_results(counter: ActorHandle) -> None:
    for size in (0, 1, 8 << 10, 1 << 20, 20 << 20):
        data = os.urandom(size)
        assert counter.same(data) == data


def test_client_of_a_class(cluster: LocalCluster, counter: ActorHandle) -> None:
    client = RpcClient(LocalResolver(cluster), Counter)
    assert asyncio.run(_increment(client)) == 1
    assert client.with_options(timeout=300).increment().result() == 2
    with pytest.raises(
        AttributeError, match=r"class Counter has no method 'incremnt'; did you mean increment?"
    ):
        client.incremnt()  # type: ignore[misc]
    with pytest.raises(AttributeError):
        client._hidden()
    assert counter.increment() == 3


async def _increment(client: RpcClient[Counter]) -> int:
    return int(await client.increment())


def test_options() -> None:
    handle = FixedResolver("127.0.0.1:1").handle("x").options(timeout=1, retries=2)
    assert handle["m"].options(idempotent=True)._options == RpcOptions(timeout=1, retries=2, idempotent=True)
    for bad in ({"timeout": -1}, {"retries": -1}):
        with pytest.raises(ValueError, match="must not be negative"):
            handle.options(**bad)  # type: ignore[arg-type]


def descriptors_now() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_leaks() -> None:
    with Scripted() as server:
        FixedResolver(server.address).handle("counter").increment()
        for _ in range(5):
            FixedResolver(server.address).handle("counter").increment()
        threads, descriptors = threading.active_count(), descriptors_now()
        for i in range(100):
            handle = FixedResolver(server.address).handle("counter").options(timeout=1000 + i)
            assert handle.increment.remote().result(300)
            server.drop() if i % 10 == 0 else None
        eventually(lambda: threading.active_count() <= threads + 1, 300)
        eventually(lambda: descriptors_now() <= descriptors + 1, 300)


def test_no_server_there() -> None:
    handle = FixedResolver("127.0.0.1:1").handle("counter").options(resolve_timeout=0.1)
    with pytest.raises(
        UnavailableError, match=r"counter.increment: no server answers at 127.0.0.1:1"
    ) as caught:
        handle.increment()
    assert not caught.value.ran


def test_unknown_actor_at_the_address(counter: ActorHandle) -> None:
    with pytest.raises(ActorError, match=r'missing.x: no actor "missing" is here'):
        FixedResolver(counter.address).lookup("missing").x()


def test_names_are_not_found(cluster: LocalCluster, counter: ActorHandle) -> None:
    with pytest.raises(ActorNotFoundError, match=r'no actor "countr" .* did you mean counter'):
        LocalResolver(cluster).lookup("countr")
    late = LocalResolver(cluster).handle("countr").options(resolve_timeout=0.1)
    with pytest.raises(LookupError, match=r'countr.increment: no actor "countr" .* did you mean counter'):
        late.increment()
    assert job_context() is None
    assert counter.increment() == 1
