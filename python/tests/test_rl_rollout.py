"""Rollout workers, against roles by the wire: N36 to N43 and N46."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from actors import PATIENCE
from fray.cluster import LocalCluster
from fray.rl import ActivityTrackerProxy, BaseRolloutWorker, SimpleRolloutWorker
from fray.rl.config import Config
from fray.rl.rollout import OverLengthError
from rl_run import Inference, Run, Signals, inference, killed_amid_a_task


@pytest.fixture(scope="module")
def service() -> Iterator[Inference]:
    with inference() as one:
        yield one


@pytest.fixture
def run() -> Iterator[Run]:
    with LocalCluster() as cluster:
        run = Run(cluster)
        yield run
        run.server.shutdown()


Step = Callable[[BaseRolloutWorker, dict[str, Any]], Any]


class Worker(BaseRolloutWorker):
    """Does what a test wants."""

    todo: Step

    def step(self, task: dict[str, Any]) -> str | None:
        result: str | None = self.todo(self, task)
        return result


@pytest.fixture
def make(run: Run, service: Inference) -> Iterator[Callable[..., Worker]]:
    """Make workers that end with the test."""
    workers: list[BaseRolloutWorker] = []

    def make(
        todo: Step, kind: type[Worker] = Worker, name: str = "rollout_worker_0", **options: Any
    ) -> Worker:
        worker = kind(
            Config({"inference_service": {"url": service.url}, "key_list": ["group_id"], **options})
        )
        worker.todo = todo
        worker.set_module_name(name)
        worker.set_module_references(**run.references())
        worker.set_activity_tracker(ActivityTrackerProxy(run.handle("activity_tracker")))
        workers.append(worker)
        return worker

    yield make
    for worker in workers:
        worker.stop()


def put(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
    return worker._put_trajectory({"prompt": task["prompt"], "reward": 1.0})


def test_all_tasks_are_rolled_out(run: Run, make: Callable[..., Worker]) -> None:
    make(put).run()
    assert run.loader.ended.count(4) == ["success"] * 4
    assert run.loader.status() | {"position": None} == {
        "drained": True,
        "leased": 0,
        "finished": True,
        "position": None,
        "locked": False,
    }
    headers = [header for _, header, _ in run.pool.put.values]
    assert [header["task_id"] for header in headers] == ["0/0/0", "0/1/0", "0/2/0", "0/3/0"]
    assert headers[0]["keys"] == {"group_id": "item-0"}
    assert headers[0]["lease"]
    assert headers[0]["scores"] == {"reward": 1.0}


def test_n36_re_rollout_repeats_the_task_from_a_fresh_copy(run: Run, make: Callable[..., Worker]) -> None:
    run.pool.answers.extend(["re-rollout", "re-rollout", "success"])
    seen = []

    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
        seen.append((task["index"], task.pop("prompt"), "spoilt" in task))
        task["spoilt"] = True
        return worker._put_trajectory({"prompt": "p"})

    make(step).run()
    run.loader.ended.count(4)
    assert seen[:3] == [(0, "mock prompt 0", False)] * 3
    assert [index for index, _, _ in seen[2:]] == [0, 1, 2, 3]


@pytest.mark.parametrize(("result", "outcome"), [(None, "none"), ("fail", "fail"), ("odd", "fail")])
def test_n37_none_and_fail_move_on(
    run: Run, make: Callable[..., Worker], result: str | None, outcome: str
) -> None:
    make(lambda *_: result).run()
    assert run.loader.ended.count(4) == [outcome] * 4
    assert not run.pool.put.values


def test_n38_a_missing_prompt_is_none(run: Run, service: Inference) -> None:
    worker = SimpleRolloutWorker(Config({"inference_service": {"url": service.url}}))
    worker.set_module_references(**run.references())
    assert worker.step({"text": "no prompt"}) is None
    assert worker.step({"prompt": "abc", "more": 1}) == "success"
    (_, header, trajectory) = run.pool.put.values[0]
    assert trajectory == {
        "prompt": "abc",
        "response": "cba",
        "finish_reason": "stop",
        "model_tag": "default",
        "more": 1,
    }
    assert "task_id" not in header


def test_n39_the_route_is_fixed_when_a_task_is_leased(run: Run, make: Callable[..., Worker]) -> None:
    at, go = threading.Semaphore(0), threading.Semaphore(0)

    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
        at.release()
        assert go.acquire(timeout=PATIENCE)
        return put(worker, task | {"prompt": f"{worker._is_running_validate}"})

    worker = make(step)
    worker.run()
    assert at.acquire(timeout=PATIENCE)
    worker.begin_validate()  # amid a task of training
    for _ in range(5):
        go.release()
    run.validation.ended.count(4)
    worker.end_validate()
    for _ in range(3):
        go.release()
    run.loader.ended.count(4)
    assert [t["prompt"] for _, _, t in run.pool.put.values] == ["False"] * 4
    assert [t["prompt"] for _, _, t in run.validator.put.values] == ["True"] * 4


def test_n40_a_leased_task_is_never_unaccounted_for(run: Run, make: Callable[..., Worker]) -> None:
    """From before the lease until after the trajectory is stored the loader's status has the task."""
    at, go = threading.Semaphore(0), threading.Semaphore(0)

    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
        outcome = put(worker, task)
        at.release()
        assert go.acquire(timeout=PATIENCE)
        return outcome

    make(step).run()
    for done in range(4):
        assert at.acquire(timeout=PATIENCE)
        status = run.loader.status()
        assert (status["leased"], len(run.pool.put.values)) == (1, done + 1)
        go.release()
    run.loader.ended.count(4)
    assert run.loader.status()["leased"] == 0


def test_n41_stop_takes_effect_after_the_current_task(run: Run, make: Callable[..., Worker]) -> None:
    at, go = threading.Event(), threading.Event()

    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
        at.set()
        assert go.wait(PATIENCE)
        return put(worker, task)

    worker = make(step)
    worker.run()
    assert at.wait(PATIENCE)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    go.set()
    stopping.join(PATIENCE)
    assert run.loader.ended.values == ["success"]
    assert run.loader.size() == 3  # data remain
    assert worker.health_check()


def test_n41_a_task_that_would_be_repeated_is_put_back(run: Run, make: Callable[..., Worker]) -> None:
    run.pool.answers.extend(["re-rollout"] * 1000)
    worker = make(put)
    worker.run()
    run.pool.put.count(2)
    worker.stop()
    assert run.loader.status()["leased"] == 0
    assert not run.loader.ended.values
    assert run.loader.lease("other", "1").item["index"] == 0  # type: ignore[union-attr]


def test_a_task_of_training_does_not_block_validation(run: Run, make: Callable[..., Worker]) -> None:
    """While validation holds the pool's lock a task of training would be repeated without end."""
    run.pool.answers.extend(["re-rollout"] * 1000)
    worker = make(put)
    worker.run()
    run.pool.put.count(2)
    worker.begin_validate()
    run.validation.ended.count(4)
    assert run.loader.came_back.values
    run.pool.answers.clear()
    worker.end_validate()
    run.loader.ended.count(4)


def test_n42_an_exception_is_reported_with_its_traceback_and_the_worker_goes_on(
    run: Run, make: Callable[..., Worker]
) -> None:
    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
        if task["index"] == 1:
            raise LookupError("no such answer")
        return put(worker, task)

    worker = make(step)
    worker.run()
    assert run.loader.ended.count(4) == ["success", "fail", "success", "success"]
    ((module, _, error, severity),) = run.tracker.errors.values
    assert (module, error["type"], error["message"], severity) == (
        "rollout_worker_0",
        "LookupError",
        "no such answer",
        "error",
    )
    assert 'raise LookupError("no such answer")' in error["traceback"]
    assert worker.health_check()


def test_n42_a_task_is_not_lost_to_an_error_of_the_weight_sync(
    run: Run, service: Inference, make: Callable[..., Worker]
) -> None:
    run.weights.block(True)

    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
        worker._llm_client.completion("x")
        return put(worker, task)

    make(step, inference_service={"url": service.url, "sync_timeout": 0.01}).run()
    run.loader.came_back.count(1)
    run.weights.block(False)
    assert run.loader.ended.count(4) == ["success"] * 4
    assert run.tracker.errors.values[0][2]["type"].endswith("WeightSyncTimeoutError")


def test_n42_a_task_is_not_lost_to_a_service_that_is_started_again(
    run: Run, service: Inference, make: Callable[..., Worker]
) -> None:
    service.answers.append(503)

    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
        worker._llm_client.completion("x")
        return put(worker, task)

    make(step, inference_service={"url": service.url, "max_retries": 0}).run()
    assert run.loader.ended.count(4) == ["success"] * 4
    assert len(run.loader.came_back.values) == 1
    ((_, _, error, severity),) = run.tracker.errors.values
    assert error["type"].endswith("LLMServiceAwayError")
    assert severity == "warning"


def test_n42_a_dead_thread_is_unhealthy(
    run: Run, make: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", crashed.append)
    worker = make(put)
    assert worker.health_check()  # it was not started
    monkeypatch.setattr(worker, "_roll_out", lambda _: 1 / 0)
    worker.run()
    assert worker._thread is not None
    worker._thread.join(PATIENCE)
    assert not worker.health_check()
    assert crashed
    assert run.loader.status()["leased"] == 1


def test_a_step_that_hangs_is_unhealthy_and_its_lease_not_renewed(
    run: Run, make: Callable[..., Worker]
) -> None:
    at, go = threading.Event(), threading.Event()

    def step(*_: Any) -> None:
        at.set()
        assert go.wait(PATIENCE)

    worker = make(step, step_timeout=0.0)
    worker.run()
    assert at.wait(PATIENCE)
    assert worker._hangs()
    assert not worker.health_check()
    go.set()
    run.loader.ended.count(4)


def test_run_needs_its_references(service: Inference) -> None:
    worker = SimpleRolloutWorker(Config({"inference_service": {"url": service.url}}))
    with pytest.raises(RuntimeError, match="set_module_references"):
        worker.run()


def test_a_second_run_and_a_later_one_change_nothing(run: Run, make: Callable[..., Worker]) -> None:
    worker = make(put)
    worker.run()
    first = worker._thread
    worker.run()
    assert worker._thread is first
    run.loader.ended.count(4)
    worker.stop()
    run.loader.add_item({"prompt": "one more"})
    worker.run()
    run.loader.ended.count(5)


def test_n46_a_trajectory_that_is_too_long_is_truncated_first(run: Run, make: Callable[..., Worker]) -> None:
    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
        del task
        long = {"tokens": list(range(6)), "loss_mask": [0] * 3 + [1] * 3, "reward": 1.0, "messages": [1, 2]}
        return worker._put_trajectory(worker._truncate(long))

    make(step, max_length=4).run()
    run.loader.ended.count(4)
    got = run.pool.put.values[0][2]
    assert (got["tokens"], got["loss_mask"], got["reward"]) == ([0, 1, 2, 3], [0, 0, 0, 1], 0.0)
    assert (got["truncated"], got["messages"]) == (True, [1, 2])


def test_n46_a_put_over_the_limit_is_an_error(run: Run, make: Callable[..., Worker]) -> None:
    worker = make(put, max_length=4)
    with pytest.raises(OverLengthError, match="5 tokens, and max_length is 4"):
        worker._put_trajectory({"tokens": [1] * 5})
    short = {"tokens": [1] * 4, "reward": 1.0}
    assert worker._truncate(short) is short
    assert not run.pool.put.values


def test_a_task_that_a_step_returns_comes_again(run: Run, make: Callable[..., Worker]) -> None:
    returned: list[bool] = []

    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str | None:
        if not returned:
            returned.append(worker._put_rollout_task(task))
            return None
        return put(worker, task)

    make(step).run()
    assert run.loader.ended.count(4) == ["success"] * 4
    assert (returned, len(run.loader.came_back.values)) == ([True], 1)


def test_a_step_may_take_another_task(run: Run, make: Callable[..., Worker]) -> None:
    def step(worker: BaseRolloutWorker, task: dict[str, Any]) -> str:
        put(worker, task)
        other = worker._get_rollout_task()
        return put(worker, other) if other is not None else "success"

    make(step).run()
    assert run.loader.ended.count(4) == ["success"] * 4
    assert run.loader.status()["leased"] == 0


def test_a_pool_that_is_away_is_waited_for(run: Run, make: Callable[..., Worker]) -> None:
    """Its process is lost after it had stored a trajectory, and before it answered."""
    from fray.rpc import ActorServer

    stored = threading.Event()
    pool = run.pool

    class Dying:
        def put_trajectory(self, header: Any, payload: Any) -> str:
            outcome = pool.put_trajectory(header, payload)
            stored.set()
            threading.Event().wait(0 if gone.is_set() else PATIENCE)
            return outcome

    gone = threading.Event()
    run.server.unregister("trajectory_pool")
    first = ActorServer(run.cluster)
    first.register("trajectory_pool", Dying())
    first.serve_background()
    make(put).run()
    assert stored.wait(PATIENCE)
    first.unregister("trajectory_pool", lost=True)
    run.server.register("trajectory_pool", pool, max_concurrency=4)
    assert run.loader.ended.count(4) == ["success"] * 4
    assert [header["task_id"] for _, header, _ in pool.put.values].count("0/0/0") == 1
    gone.set()
    first.shutdown(0)


def test_n43_a_worker_that_is_killed_amid_a_task(
    tmp_path: Path, make: Callable[..., Worker], run: Run
) -> None:
    """Its task is another worker's once its lease is over."""
    killed_amid_a_task(tmp_path, run.server.address)
    assert run.loader.status()["leased"] == 1
    run.loader._ttl = 0.0  # what is not renewed is over at once
    worker = make(put)
    worker.run()
    assert run.loader.ended.count(4) == ["success"] * 4
    tasks = [header["task_id"] for _, header, _ in run.pool.put.values]
    assert sorted(tasks) == ["0/0/0", "0/1/0", "0/2/0", "0/3/0"]


def test_leases_are_renewed(run: Run, make: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    renewed = Signals()
    monkeypatch.setattr(run.loader, "renew", lambda *who: renewed.add(who))
    worker = make(put, lease_ttl=0.01)
    worker.run()
    assert renewed.count(2)[0] == ("rollout_worker_0", worker._incarnation)
