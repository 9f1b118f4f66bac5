"""Several tasks of a rollout worker at once, and calls that are made as one: N40, N43 and N20."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from actors import PATIENCE
from fray.cluster import LocalCluster
from fray.rl import ActivityTrackerProxy, BaseRolloutWorker
from fray.rl.combined import Combined, LongPoll
from fray.rl.config import Config
from fray.rl.leases import LeasedLoader
from rl_run import Inference, Run, inference


@pytest.fixture(scope="module")
def service() -> Iterator[Inference]:
    with inference() as one:
        yield one


class Worker(BaseRolloutWorker):
    """Does what a test wants."""

    todo: Callable[[BaseRolloutWorker, dict[str, Any]], Any]

    def step(self, task: dict[str, Any]) -> str | None:
        result: str | None = self.todo(self, task)
        return result


@pytest.fixture
def run() -> Iterator[Run]:
    with LocalCluster() as cluster:
        run = Run(cluster, items=12)
        yield run
        run.server.shutdown()


@pytest.fixture
def make(run: Run, service: Inference) -> Iterator[Callable[..., Worker]]:
    workers: list[Worker] = []

    def make(todo: Callable[..., Any], concurrency: int = 4) -> Worker:
        config = {
            "inference_service": {"url": service.url},
            "key_list": ["group_id"],
            "concurrency": concurrency,
        }
        worker = Worker(Config(config))
        worker.todo = todo
        worker.set_module_name("rollout_worker_0")
        worker.set_module_references(**run.references())
        worker.set_activity_tracker(ActivityTrackerProxy(run.handle("activity_tracker")))
        workers.append(worker)
        return worker

    yield make
    for worker in workers:
        worker.stop()


def put(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
    return worker._put_trajectory({"prompt": task["prompt"], "reward": 1.0})


def test_n40_tasks_are_rolled_out_at_once_and_each_has_its_lease(
    run: Run, make: Callable[..., Worker]
) -> None:
    together = threading.Barrier(4)

    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
        together.wait(PATIENCE)  # with less than four at once it breaks
        assert run.loader.status()["leased"] == 4
        return put(worker, task)

    worker = make(step)
    worker.run()
    assert run.loader.ended.count(12) == ["success"] * 12
    headers = [header for _, header, _ in run.pool.put.values]
    assert sorted(int(header["task_id"].split("/")[1]) for header in headers) == list(range(12))
    assert len({header["lease"] for header in headers}) == 12
    assert all(header["keys"]["group_id"] == f"item-{header['task_id'].split('/')[1]}" for header in headers)
    assert worker.health_check()


def test_n40_a_lease_ends_while_others_are_rolled_out(run: Run, make: Callable[..., Worker]) -> None:
    """The last tasks are not kept from ending by a slot that waits for more."""
    go = threading.Event()

    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
        if task["index"] == 0:
            assert go.wait(PATIENCE)
        return put(worker, task)

    make(step).run()
    run.loader.ended.count(11)
    assert run.loader.status()["leased"] == 1
    go.set()
    run.loader.ended.count(12)
    assert run.loader.status()["leased"] == 0


def test_n41_stop_ends_all_leases(run: Run, make: Callable[..., Worker]) -> None:
    at, go = threading.Semaphore(0), threading.Event()

    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
        at.release()
        assert go.wait(PATIENCE)
        return put(worker, task)

    worker = make(step)
    worker.run()
    for _ in range(4):
        assert at.acquire(timeout=PATIENCE)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    go.set()
    stopping.join(PATIENCE)
    assert run.loader.ended.values == ["success"] * 4
    assert run.loader.status()["leased"] == 0
    assert run.loader.size() == 8


def test_n39_each_task_goes_where_it_was_routed(run: Run, make: Callable[..., Worker]) -> None:
    worker = make(lambda worker, task: put(worker, task | {"prompt": str(worker._is_running_validate)}))
    worker.begin_validate()
    worker.run()
    run.validation.ended.count(12)
    worker.end_validate()
    run.loader.ended.count(12)
    assert [t["prompt"] for _, _, t in run.pool.put.values] == ["False"] * 12
    assert [t["prompt"] for _, _, t in run.validator.put.values] == ["True"] * 12


def test_n42_an_error_is_of_its_task_alone(run: Run, make: Callable[..., Worker]) -> None:
    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
        if task["index"] % 3 == 0:
            return worker._put_trajectory({"prompt": object()})  # which cannot be packed
        return put(worker, task)

    make(step).run()
    assert sorted(run.loader.ended.count(12)) == ["fail"] * 4 + ["success"] * 8
    assert {error["type"].rpartition(".")[2] for _, _, error, _ in run.tracker.errors.values} == {
        "PayloadError"
    }


def test_n42_an_error_of_a_loader_does_not_end_the_worker(
    run: Run, make: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a task that cannot be taken, nor one that cannot be put back: it comes again."""
    failing = {"exchange_leases": 2, "put_back": 1}

    def fails(name: str, kept: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, *args: Any) -> Any:
            if failing[name]:
                failing[name] -= 1
                raise OSError("the loader's disk")
            return kept(self, *args)

        return method

    for name in failing:
        monkeypatch.setattr(LeasedLoader, name, fails(name, getattr(LeasedLoader, name)))
    run.pool.answers.append("re-rollout")
    returned = threading.Event()

    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str | None:
        if not returned.is_set():
            returned.set()
            worker._put_rollout_task(task)
        return put(worker, task)

    worker = make(step, 1)
    worker.run()
    run.loader.ended.count(12)
    assert worker.health_check()
    assert run.loader.status()["leased"] == 0
    messages = [error["message"] for _, _, error, _ in run.tracker.errors.values]
    assert [message.rpartition(": ")[2] for message in messages] == ["the loader's disk"] * 3


def test_calls_that_come_together_are_made_as_one() -> None:
    made: list[list[int]] = []
    first, go = threading.Event(), threading.Event()

    def call(entries: list[int]) -> list[int]:
        made.append(entries)
        if not first.is_set():
            first.set()
            assert go.wait(PATIENCE)
        return [2 * entry for entry in entries]

    combined: Combined[int, int] = Combined(call)
    answers: dict[int, int] = {}
    threads = [threading.Thread(target=lambda n=n: answers.update({n: combined.ask(n)})) for n in range(9)]
    threads[0].start()
    assert first.wait(PATIENCE)
    for thread in threads[1:]:
        thread.start()
    while len(combined) < 8:
        threading.Event().wait(0.001)
    go.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert answers == {n: 2 * n for n in range(9)}
    assert [len(entries) for entries in made] == [1, 8]


def test_an_error_is_that_of_all_entries_and_the_next_call_is_made() -> None:
    failing = [True]

    def call(entries: list[str]) -> list[str]:
        if failing.pop() if failing else False:
            raise OSError("away")
        return entries

    combined: Combined[str, str] = Combined(call)
    with pytest.raises(OSError, match="away"):
        combined.ask("a")
    assert combined.ask("b") == "b"


def test_a_call_waits_for_those_that_come_soon() -> None:
    """It is made once all of them have, without the time being over."""
    made: list[list[int]] = []
    combined: Combined[int, int]

    def call(entries: list[int]) -> list[int]:
        made.append(entries)
        return entries

    combined = Combined(call, linger=PATIENCE, more=lambda: 3 - len(combined))
    threads = [threading.Thread(target=combined.ask, args=[n]) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert [sorted(entries) for entries in made] == [[0, 1, 2]]


def test_a_long_call_can_be_interrupted(run: Run) -> None:
    poll = LongPoll()
    run.weights.block(True)
    method = run.handle("weight_sync_controller").options(idempotent=True).wait_rollout_service
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(poll.call(method, "m", 1.0)))
    thread.start()
    run.weights.asked.count(1)
    poll.interrupt()
    thread.join(PATIENCE)
    assert answers in ([None], ["block"])  # a method of Python goes on, and answers in the end
    assert poll.call(method, "m", 0.0, since=-1) in (None, "block")
