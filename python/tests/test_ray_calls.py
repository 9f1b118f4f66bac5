"""Programs that wait, pass futures on, retry, cancel and use pools, on fray and on Ray.

They have the same outcome, but where a test says what fray's is, and docs/guides/actors.md why. Those on Ray
run where it can be imported.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fray.rpc import ActorPool, wait
from fray.rpc.errors import ActorError, CancelledError, EncodingError
from fray.v2 import LocalClient
from gates import Busy, Flaky, Gate, Log
from waiting import eventually

LIMIT = 300


class Fray:
    """fray, as the programs use it."""

    differs = False

    def __init__(self) -> None:
        self._client = LocalClient()
        self._count = 0
        self.wait: Callable[..., Any] = wait
        self.pool: Callable[..., Any] = ActorPool

    def actor(self, cls: type, *args: Any) -> Any:
        self._count += 1
        return self._client.create_actor(cls, *args, name=f"actor_{self._count}")

    def get(self, future: Any, timeout: float | None = LIMIT) -> Any:
        return future.result(timeout)

    def retried(self, method: Any, retries: int | None = None, **options: Any) -> Any:
        return method.options(**options) if retries is None else method.options(retries=retries, **options)

    def cancel(self, future: Any) -> None:
        future.cancel()

    def error(self, err: BaseException) -> str:
        if isinstance(err, CancelledError):
            return "cancelled"
        return err.message if isinstance(err, ActorError) else type(err).__name__

    def close(self) -> None:
        self._client.shutdown()


class Ray:
    """Ray, as the programs use it."""

    differs = True

    def __init__(self) -> None:
        ray = self._ray = importlib.import_module("ray")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        self.wait: Callable[..., Any] = ray.wait
        self.pool: Callable[..., Any] = importlib.import_module("ray.util").ActorPool

    def actor(self, cls: type, *args: Any) -> Any:
        return self._ray.remote(num_cpus=0)(cls).remote(*args)

    def get(self, future: Any, timeout: float | None = LIMIT) -> Any:
        return self._ray.get(future, timeout=timeout)

    def retried(self, method: Any, retries: int | None = None, **options: Any) -> Any:
        return method.options(max_task_retries=retries or 0, **options)

    def cancel(self, future: Any) -> None:
        self._ray.cancel(future)

    def error(self, err: BaseException) -> str:
        cause = getattr(err, "cause", None)
        if type(err).__name__ == "TaskCancelledError":
            return "cancelled"
        return f"{type(cause).__name__}: {cause}" if cause is not None else type(err).__name__

    def close(self) -> None:
        self._ray.shutdown()


@pytest.fixture(scope="module", params=[Fray, Ray], ids=["fray", "ray"])
def system(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param is Ray and importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not here")
    system = request.param()
    yield system
    system.close()


def places(found: Any, futures: list[Any]) -> tuple[list[int], list[int]]:
    ready, rest = found
    return [futures.index(future) for future in ready], [futures.index(future) for future in rest]


def outcome(system: Any, future: Any) -> Any:
    """Return what a call returned, or the error as text."""
    try:
        return system.get(future)
    except Exception as err:
        return system.error(err)


# wait


def test_wait_for_the_first(system: Any) -> None:
    gate = system.actor(Gate)
    futures = [gate.passes.remote(i) for i in range(3)]
    gate.open.remote(1)
    assert places(system.wait(futures, timeout=LIMIT), futures) == ([1], [0, 2])
    gate.open.remote(2)
    system.get(futures[2])
    assert places(system.wait(futures, num_returns=2), futures) == ([1, 2], [0])
    assert places(system.wait(futures, num_returns=3, timeout=0.1), futures) == ([1, 2], [0])
    gate.open.remote(0)
    assert places(system.wait(futures, num_returns=3), futures) == ([0, 1, 2], [])


def test_wait_returns_no_more_than_was_asked_for(system: Any) -> None:
    gate = system.actor(Gate)
    for i in range(3):
        system.get(gate.open.remote(i))
    futures = [gate.passes.remote(i) for i in range(3)]
    system.wait(futures, num_returns=3)
    ready, rest = system.wait(futures, num_returns=1)
    assert (len(ready), len(rest)) == (1, 2)


def test_wait_that_does_not_wait(system: Any) -> None:
    gate = system.actor(Gate)
    future = gate.passes.remote(1)
    assert places(system.wait([future], timeout=0), [future]) == ([], [0])
    assert system.wait([]) == ([], [])
    system.get(gate.open.remote(1))
    assert system.get(future) == 1


def test_wait_counts_a_failed_call(system: Any) -> None:
    log = system.actor(Log)
    future = log.fail.remote("why")
    assert system.wait([future], timeout=LIMIT) == ([future], [])
    assert outcome(system, future) == "ValueError: why"


@pytest.mark.parametrize(
    ("arguments", "options", "kind"),
    [
        (lambda f: [f, f], {}, ValueError),
        (lambda f: [f], {"num_returns": 0}, ValueError),
        (lambda f: [f], {"num_returns": 2}, ValueError),
        (lambda f: [f], {"timeout": -1}, ValueError),
        (lambda f: f, {}, TypeError),
    ],
    ids=["twice", "none", "too many", "negative", "one"],
)
def test_mistakes_of_wait(
    system: Any, arguments: Callable[[Any], Any], options: dict[str, Any], kind: type[Exception]
) -> None:
    future = system.actor(Log).noted.remote()
    with pytest.raises(kind):
        system.wait(arguments(future), **options)


def test_a_loop_over_wait(system: Any) -> None:
    gate = system.actor(Gate)
    left, order = [gate.passes.remote(i) for i in range(5)], []
    for i in (3, 1, 4, 0, 2):
        gate.open.remote(i)
        ready, left = system.wait(left, timeout=LIMIT)
        order += [system.get(future) for future in ready]
    assert order == [3, 1, 4, 0, 2]


# Futures as arguments


def test_futures_stand_for_their_results(system: Any) -> None:
    log = system.actor(Log)
    first, second = log.note.remote(1), log.note.remote(2)
    assert system.get(log.note.remote(first, other=second)) == 1
    assert system.get(log.noted.remote()) == [1, 2, [1, 2]]


def test_calls_behind_one_that_waits_for_its_argument(system: Any) -> None:
    gate, log = system.actor(Gate), system.actor(Log)
    futures = [log.note.remote(gate.passes.remote("first")), log.note.remote("second")]
    assert places(system.wait(futures, timeout=0.1), futures)[0] == []
    gate.open.remote("first")
    assert [system.get(future) for future in futures] == ["first", "second"]
    assert system.get(log.noted.remote()) == ["first", "second"]


def test_an_argument_that_failed(system: Any) -> None:
    log = system.actor(Log)
    assert outcome(system, log.note.remote(log.fail.remote("why"))) == "ValueError: why"
    assert system.get(log.noted.remote()) == []


def test_a_future_in_a_list(system: Any) -> None:
    """Ray's arrives as a reference, which the method may wait for; fray's cannot leave its process."""
    log = system.actor(Log)
    if system.differs:
        assert system.get(log.note.remote([log.noted.remote()])) != [[]]
        return
    with pytest.raises(EncodingError, match="pass it as an argument of its own, or its result"):
        log.note.remote([log.noted.remote()])


# Retries


@pytest.mark.parametrize(
    ("retries", "exceptions", "fails", "runs"),
    [
        (None, None, 9, 1),
        (3, None, 9, 1),
        (3, True, 2, 3),
        (3, True, 3, 4),
        (3, True, 9, 4),
        (0, True, 9, 1),
        (3, [ValueError], 9, 4),
        (3, [Exception], 9, 4),
        (3, [KeyError, ValueError], 9, 4),
        (3, [KeyError], 9, 1),
    ],
)
def test_how_often_a_method_runs_that_raises(
    system: Any, retries: int | None, exceptions: Any, fails: int, runs: int
) -> None:
    flaky = system.actor(Flaky)
    options = {} if exceptions is None else {"retry_exceptions": exceptions}
    future = system.retried(flaky.fails, retries, **options).remote(fails)
    assert outcome(system, future) == (runs if runs > fails else f"ValueError: {runs}")
    assert system.get(flaky.runs.remote()) == runs


# Cancelling, and calls that wait


def busy(system: Any, path: Path) -> tuple[Any, Any]:
    """Return an actor that is busy until a file exists, and the call that it is busy with."""
    actor = system.actor(Busy)
    call = actor.until.remote(str(path))
    eventually(lambda: Path(f"{path}.begun").exists())
    return actor, call


def test_cancel_of_a_call_that_waits_its_turn(system: Any, tmp_path: Path) -> None:
    """In Ray 2.60 later calls fail then, as the actor waits for the number of the one that was cancelled."""
    actor, runs = busy(system, tmp_path / "end")
    calls = [actor.note.remote(i) for i in range(3)]
    system.cancel(calls[1])
    assert outcome(system, calls[1]) == "cancelled"
    (tmp_path / "end").touch()
    assert system.get(runs) == str(tmp_path / "end")
    assert system.get(calls[0]) == 0
    if not system.differs:
        assert system.get(calls[2]) == 2
        assert system.get(actor.noted.remote()) == [0, 2]


def test_cancel_of_a_call_that_has_ended(system: Any) -> None:
    log = system.actor(Log)
    future = log.note.remote(1)
    assert system.get(future) == 1
    system.cancel(future)
    assert system.get(future) == 1


def test_waiting_for_a_result_that_does_not_come(system: Any, tmp_path: Path) -> None:
    actor, runs = busy(system, tmp_path / "end")
    with pytest.raises(TimeoutError):
        system.get(runs, timeout=0.05)
    pending = [actor.note.remote(i) for i in range(300)]
    assert places(system.wait(pending, num_returns=300, timeout=0.05), pending)[0] == []
    (tmp_path / "end").touch()
    assert [system.get(future) for future in pending] == list(range(300))
    assert system.get(actor.noted.remote()) == list(range(300))


# Pools


def submitted(system: Any, count: int) -> tuple[Any, Any, dict[int, Any]]:
    """Return a pool, the function that gives it work, and which actor has which."""
    at: dict[int, Any] = {}

    def function(gate: Any, value: int) -> Any:
        at[value] = gate
        return gate.passes.remote(value)

    return system.pool([system.actor(Gate) for _ in range(count)]), function, at


def echo(log: Any, value: Any) -> Any:
    return log.note.remote(value)


def test_pool_map(system: Any) -> None:
    pool = system.pool([system.actor(Log) for _ in range(2)])
    assert list(pool.map(echo, range(7))) == list(range(7))
    assert sorted(pool.map_unordered(echo, range(7))) == list(range(7))
    assert list(pool.map(echo, [])) == []
    assert (pool.has_next(), pool.has_free()) == (False, True)


def test_pool_out_of_order(system: Any) -> None:
    pool, function, at = submitted(system, 3)
    for value in range(3):
        pool.submit(function, value)
    assert (pool.has_next(), pool.has_free(), pool.pop_idle()) == (True, False, None)
    for get in (pool.get_next, pool.get_next_unordered):
        with pytest.raises(TimeoutError):
            get(timeout=0.05)
    at[2].open.remote(2)
    assert pool.get_next_unordered(timeout=LIMIT) == 2
    assert pool.has_free()
    at[1].open.remote(1)
    assert pool.get_next_unordered(timeout=LIMIT) == 1
    at[0].open.remote(0)
    assert pool.get_next_unordered(timeout=LIMIT) == 0
    assert not pool.has_next()
    for get in (pool.get_next, pool.get_next_unordered):
        with pytest.raises(StopIteration):
            get()


def test_pool_in_order(system: Any) -> None:
    pool, function, at = submitted(system, 3)
    for value in range(3):
        pool.submit(function, value)
        at[value].open.remote(value)
    assert [pool.get_next(timeout=LIMIT) for _ in range(3)] == [0, 1, 2]
    assert (pool.has_next(), pool.has_free()) == (False, True)


def test_pool_in_order_after_out_of_order(system: Any) -> None:
    """Ray refuses that once what came out of order was the last; fray returns the oldest that is left."""
    pool, function, at = submitted(system, 2)
    for value in range(2):
        pool.submit(function, value)
        at[value].open.remote(value)
    first = pool.get_next_unordered(timeout=LIMIT)
    if not system.differs:
        assert pool.get_next(timeout=LIMIT) == 1 - first


def test_pool_push_and_pop(system: Any) -> None:
    actors = [system.actor(Log) for _ in range(2)]
    pool = system.pool(actors)
    with pytest.raises(ValueError, match="already"):
        pool.push(actors[0])
    taken = [pool.pop_idle(), pool.pop_idle()]
    assert set(map(actors.index, taken)) == {0, 1}
    assert (pool.pop_idle(), pool.has_free()) == (None, False)
    for actor in taken:
        pool.push(actor)
    assert list(pool.map(echo, range(3))) == [0, 1, 2]


def test_pool_with_a_method_that_raises(system: Any) -> None:
    pool = system.pool([system.actor(Log) for _ in range(2)])

    def function(log: Any, value: int) -> Any:
        return log.fail.remote("why") if value == 1 else log.note.remote(value)

    results = pool.map(function, range(4))
    assert next(results) == 0
    with pytest.raises(Exception, match="why"):
        next(results)
    assert [pool.get_next(), pool.get_next()] == [2, 3]
    assert pool.has_free()


def test_pool_of_which_one_actor_takes_long(system: Any) -> None:
    """In Ray the others wait until the caller has had the result of the first; fray gives them work."""
    pool, function, at = submitted(system, 2)
    results = pool.map(function, range(4))
    at[1].open.remote(1)
    if system.differs:
        assert sorted(at) == [0, 1]
    else:
        eventually(lambda: not pool.has_free() and 2 in at)
        assert at[2] == at[1]
    for gate in set(at.values()):
        for value in range(4):
            gate.open.remote(value)
    assert list(results) == [0, 1, 2, 3]


def test_pool_without_actors(system: Any) -> None:
    """Ray holds the work back, and reports neither work nor a result until an actor is pushed."""
    pool = system.pool([])
    pool.submit(echo, 1)
    assert pool.has_next() is not system.differs
    pool.push(system.actor(Log))
    if not system.differs:
        assert pool.get_next() == 1
