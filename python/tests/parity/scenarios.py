"""What users of Ray's actors rely on, one function for each, in the terms of both engines.

Each returns what its program observed, as JSON. A count of what ran comes from a file, which outlives actors.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parity.actors import (
    Asynchronous,
    Broken,
    Caller,
    Counter,
    FirstError,
    Meeting,
    Once,
    Streaming,
    Worker,
)
from parity.engine import UNKNOWN, Engine, ends

PATIENCE = 300.0  # seconds
SHORT = 0.05  # seconds after which a wait is over that is to be over

Scenario = Callable[[Engine], Any]
SCENARIOS: dict[str, Scenario] = {}
_numbers = itertools.count()


def scenario(run: Scenario) -> Scenario:
    """Add a scenario under its name."""
    SCENARIOS[run.__name__] = run
    return run


def _notes(e: Engine) -> str:
    return str(e.scratch / f"notes-{next(_numbers)}")


def _counter(e: Engine, **options: Any) -> Any:
    return e.create(Counter, 0, _notes(e), **options)


def _until(done: Callable[[], bool]) -> bool:
    """Wait for something to happen, and report whether it did."""
    until = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def _began(gate: str) -> bool:
    """Wait until a call of wait_for runs."""
    return _until(Path(f"{gate}.begun").exists)


def _touch(path: str) -> None:
    Path(path).touch()


# Retries


@scenario
def a_call_that_may_have_run_is_not_repeated(e: Engine) -> Any:
    counter = _counter(e, max_restarts=1)
    outcome = ends(e, lambda: e.get(counter.die.remote(), PATIENCE))
    return outcome, e.get(counter.lines.remote(), PATIENCE)


@scenario
def a_call_is_repeated_if_allowed(e: Engine) -> Any:
    counter = _counter(e, max_restarts=1, retries=1)
    return e.get(counter.die_until.remote(1), PATIENCE)


@scenario
def a_call_is_repeated_as_often_as_allowed(e: Engine) -> Any:
    counter = _counter(e, max_restarts=-1, retries=3)
    return e.get(counter.die_until.remote(3), PATIENCE)


@scenario
def retries_end(e: Engine) -> Any:
    counter = _counter(e, max_restarts=-1, retries=1)
    outcome = ends(e, lambda: e.get(counter.die_until.remote(9), PATIENCE))
    return outcome, e.get(counter.lines.remote(), PATIENCE)


@scenario
def an_exception_is_not_retried(e: Engine) -> Any:
    counter = _counter(e, retries=3)
    outcome = ends(e, lambda: e.get(counter.fail_until.remote(1), PATIENCE))
    return outcome, e.get(counter.lines.remote(), PATIENCE)


@scenario
def every_exception_is_retried_if_allowed(e: Engine) -> Any:
    counter = _counter(e, retries=2, retry_exceptions=True)
    return e.get(counter.fail_until.remote(2), PATIENCE)


@scenario
def retries_of_exceptions_end(e: Engine) -> Any:
    counter = _counter(e, retries=2, retry_exceptions=True)
    outcome = ends(e, lambda: e.get(counter.fail_until.remote(9), PATIENCE))
    return outcome, e.get(counter.lines.remote(), PATIENCE)


@scenario
def chosen_exceptions_are_retried(e: Engine) -> Any:
    counter = _counter(e, retries=1, retry_exceptions=[ValueError])
    return e.get(counter.fail_until.remote(1), PATIENCE)


@scenario
def other_exceptions_are_not_retried(e: Engine) -> Any:
    counter = _counter(e, retries=1, retry_exceptions=[ValueError])
    outcome = ends(e, lambda: e.get(counter.fail_until.remote(1, "key"), PATIENCE))
    return outcome, e.get(counter.lines.remote(), PATIENCE)


@scenario
def subclasses_of_chosen_exceptions_are_retried(e: Engine) -> Any:
    counter = _counter(e, retries=1, retry_exceptions=[ValueError])
    return e.get(counter.fail_until.remote(1, "first"), PATIENCE)


@scenario
def crashes_and_exceptions_share_one_budget(e: Engine) -> Any:
    counter = _counter(e, max_restarts=-1, retries=2, retry_exceptions=True)
    outcome = ends(e, lambda: e.get(counter.fail_then_die.remote(), PATIENCE))
    return outcome, e.get(counter.lines.remote(), PATIENCE)


# Crashes and restarts


@scenario
def without_restarts_a_crash_is_the_end(e: Engine) -> Any:
    counter = _counter(e, max_restarts=0)
    ends(e, lambda: e.get(counter.die.remote(), PATIENCE))
    return ends(e, lambda: e.get(counter.increment.remote(), PATIENCE))


@scenario
def a_restart_loses_the_memory(e: Engine) -> Any:
    counter = _counter(e, max_restarts=1)
    before = e.get(counter.increment.remote(5), PATIENCE)
    ends(e, lambda: e.get(counter.die.remote(), PATIENCE))
    return before, e.get(counter.increment.remote(), PATIENCE)


@scenario
def a_restart_is_another_process(e: Engine) -> Any:
    counter = _counter(e, max_restarts=1)
    before = e.get(counter.pid.remote(), PATIENCE)
    ends(e, lambda: e.get(counter.die.remote(), PATIENCE))
    return before != e.get(counter.pid.remote(), PATIENCE)


@scenario
def restarts_end(e: Engine) -> Any:
    counter = _counter(e, max_restarts=1)
    ends(e, lambda: e.get(counter.die.remote(), PATIENCE))
    again = e.get(counter.increment.remote(), PATIENCE)
    ends(e, lambda: e.get(counter.die.remote(), PATIENCE))
    return again, ends(e, lambda: e.get(counter.increment.remote(), PATIENCE))


@scenario
def restarts_without_end(e: Engine) -> Any:
    counter = _counter(e, max_restarts=-1)
    for _ in range(3):
        ends(e, lambda: e.get(counter.die.remote(), PATIENCE))
        e.get(counter.read.remote(), PATIENCE)
    return e.get(counter.increment.remote(), PATIENCE)


@scenario
def constructor_arguments_are_kept_for_restarts(e: Engine) -> Any:
    counter = e.create(Counter, 40, _notes(e), max_restarts=1)
    ends(e, lambda: e.get(counter.die.remote(), PATIENCE))
    return e.get(counter.increment.remote(2), PATIENCE)


@scenario
def a_constructor_that_raises(e: Engine) -> Any:
    return ends(e, lambda: e.get(e.create(Broken).read.remote(), PATIENCE))


@scenario
def a_constructor_that_raises_is_not_tried_again(e: Engine) -> Any:
    return ends(e, lambda: e.get(e.create(Broken, max_restarts=3).read.remote(), PATIENCE))


@scenario
def a_constructor_that_raises_at_a_restart(e: Engine) -> Any:
    once = e.create(Once, _notes(e), max_restarts=1)
    ends(e, lambda: e.get(once.die.remote(), PATIENCE))
    return ends(e, lambda: e.get(once.read.remote(), PATIENCE))


@scenario
def kill_ends_an_actor(e: Engine) -> Any:
    counter = _counter(e, max_restarts=3)
    e.get(counter.increment.remote(), PATIENCE)
    e.kill(counter)
    return ends(e, lambda: e.get(counter.increment.remote(), PATIENCE))


@scenario
def kill_with_a_restart(e: Engine) -> Any:
    counter = _counter(e, max_restarts=1)
    before = e.get(counter.pid.remote(), PATIENCE)
    e.kill(counter, no_restart=False)

    def moved() -> bool:
        found = ends(e, lambda: e.get(counter.pid.remote(), PATIENCE))
        return isinstance(found, int) and found != before

    return _until(moved)


@scenario
def kill_does_not_wait_for_a_running_call(e: Engine) -> Any:
    counter, gate = _counter(e, max_restarts=0), _notes(e)
    running = counter.wait_for.remote(gate)
    _began(gate)
    e.kill(counter)
    return ends(e, lambda: e.get(running, PATIENCE))


# Order


@scenario
def calls_run_in_the_order_of_their_caller(e: Engine) -> Any:
    counter = _counter(e)
    return e.get([counter.increment.remote() for _ in range(50)], PATIENCE)


@scenario
def two_handles_share_one_order(e: Engine) -> Any:
    counter = _counter(e, name="ordered")
    other = e.find("ordered")
    return e.get([each.increment.remote() for each in (counter, other) * 10], PATIENCE)


@scenario
def calls_before_the_actor_is_there_keep_their_order(e: Engine) -> Any:
    counter = _counter(e)
    futures = [counter.increment.remote() for _ in range(3)]
    return e.get(futures, PATIENCE)


@scenario
def a_future_is_an_argument(e: Engine) -> Any:
    first, second = _counter(e), _counter(e)
    return e.get(second.increment.remote(first.increment.remote(20)), PATIENCE)


@scenario
def a_future_that_fails_is_an_argument(e: Engine) -> Any:
    first, second = _counter(e), _counter(e)
    outcome = ends(e, lambda: e.get(second.increment.remote(first.raises.remote("no value")), PATIENCE))
    return outcome, e.get(second.read.remote(), PATIENCE)


@scenario
def calls_of_one_actor_exclude_each_other(e: Engine) -> Any:
    meeting = e.create(Meeting, 2)
    e.get([meeting.crowd.remote() for _ in range(6)], PATIENCE)
    return e.get(meeting.at_most.remote(), PATIENCE)


@scenario
def calls_run_at_a_time_if_allowed(e: Engine) -> Any:
    meeting = e.create(Meeting, 3, max_concurrency=3)
    return e.get([meeting.meet.remote() for _ in range(3)], PATIENCE)


@scenario
def concurrency_is_limited(e: Engine) -> Any:
    meeting = e.create(Meeting, 3, max_concurrency=2)
    e.get([meeting.crowd.remote() for _ in range(8)], PATIENCE)
    return e.get(meeting.at_most.remote(), PATIENCE) <= 2


@scenario
def coroutines_run_at_a_time(e: Engine) -> Any:
    actor = e.create(Asynchronous)
    return e.get([actor.meet.remote(5) for _ in range(5)], PATIENCE)


# Calls that wait


@scenario
def waiting_calls_end_when_their_actor_is_killed(e: Engine) -> Any:
    counter, gate = _counter(e, max_restarts=0), _notes(e)
    counter.wait_for.remote(gate)
    waiting = [counter.increment.remote() for _ in range(3)]
    _began(gate)
    e.kill(counter)
    return [ends(e, lambda f=f: e.get(f, PATIENCE)) for f in waiting]  # type: ignore[misc]


@scenario
def calls_that_wait_at_a_crash_may_have_run(e: Engine) -> Any:
    counter = _counter(e, max_restarts=1)
    dying = counter.die.remote()
    waiting = [counter.append.remote(f"call {i}") for i in range(3)]
    ends(e, lambda: e.get(dying, PATIENCE))
    outcomes = [ends(e, lambda f=f: e.get(f, PATIENCE)) for f in waiting]  # type: ignore[misc]
    return outcomes, e.get(counter.lines.remote(), PATIENCE)


@scenario
def a_result_can_be_had_after_a_timeout(e: Engine) -> Any:
    counter, gate = _counter(e), _notes(e)
    future = counter.wait_for.remote(gate)
    early = ends(e, lambda: e.get(future, SHORT))
    _touch(gate)
    return early, e.get(future, PATIENCE)


@scenario
def a_result_can_be_had_twice(e: Engine) -> Any:
    future = _counter(e).increment.remote()
    return e.get(future, PATIENCE), e.get(future, PATIENCE)


@scenario
def a_thousand_calls_wait(e: Engine) -> Any:
    counter = _counter(e)
    return sum(e.get([counter.increment.remote(1) for _ in range(1000)], PATIENCE))


@scenario
def results_outlive_their_actor(e: Engine) -> Any:
    counter = _counter(e, max_restarts=0)
    future = counter.increment.remote()
    e.wait([future], timeout=PATIENCE)
    e.kill(counter)
    return e.get(future, PATIENCE)


@scenario
def threads_call_one_actor(e: Engine) -> Any:
    counter = _counter(e)
    threads = [
        threading.Thread(target=lambda: e.get([counter.increment.remote() for _ in range(20)], PATIENCE))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return e.get(counter.read.remote(), PATIENCE)


# Errors


@scenario
def an_exception_is_caught_by_its_class(e: Engine) -> Any:
    counter = _counter(e)
    try:
        e.get(counter.raises.remote("no such lesson"), PATIENCE)
    except FirstError as err:
        return "no such lesson" in str(err)
    return "nothing was raised"


@scenario
def an_actor_outlives_an_exception(e: Engine) -> Any:
    counter = _counter(e)
    ends(e, lambda: e.get(counter.raises.remote(""), PATIENCE))
    return e.get(counter.increment.remote(), PATIENCE)


@scenario
def wrong_arguments(e: Engine) -> Any:
    counter = _counter(e)
    return ends(e, lambda: e.get(counter.increment.remote(1, 2, 3), PATIENCE))


# Lifetimes


@scenario
def an_actor_ends_with_its_program(e: Engine) -> Any:
    with e.driver() as program:
        program.create(Counter, 0, _notes(e), name="attached")
        there = e.get(e.find("attached").increment.remote(), PATIENCE)
    return there, _until(lambda: ends(e, lambda: e.find("attached")) == UNKNOWN)


@scenario
def a_detached_actor_outlives_its_program(e: Engine) -> Any:
    with e.driver() as program:
        program.create(Counter, 0, _notes(e), name="lasting", detached=True)
    lasting = e.find("lasting")
    outcome = e.get(lasting.increment.remote(), PATIENCE)
    e.kill(lasting)
    return outcome


@scenario
def an_actor_calls_one_that_it_was_given(e: Engine) -> Any:
    counter = _counter(e)
    caller = e.create(Caller, e.getter(), counter)
    return e.get(caller.ask.remote(), PATIENCE), e.get(counter.increment.remote(), PATIENCE)


@scenario
def a_handle_is_an_argument(e: Engine) -> Any:
    counter = _counter(e)
    caller = e.create(Caller, e.getter())
    return e.get(caller.ask_of.remote(counter), PATIENCE), e.get(counter.increment.remote(), PATIENCE)


# Names


@scenario
def a_named_actor_is_found(e: Engine) -> Any:
    counter = _counter(e, name="found")
    e.get(counter.increment.remote(), PATIENCE)
    return e.get(e.find("found").increment.remote(), PATIENCE)


@scenario
def a_name_without_an_actor(e: Engine) -> Any:
    return ends(e, lambda: e.find("missing"))


@scenario
def a_name_that_is_taken(e: Engine) -> Any:
    first = _counter(e, name="taken")
    e.get(first.read.remote(), PATIENCE)
    return ends(e, lambda: e.get(_counter(e, name="taken").read.remote(), PATIENCE))


@scenario
def the_actor_that_exists(e: Engine) -> Any:
    first = _counter(e, name="shared", get_if_exists=True)
    e.get(first.increment.remote(), PATIENCE)
    return e.get(_counter(e, name="shared", get_if_exists=True).increment.remote(), PATIENCE)


@scenario
def a_name_is_free_again(e: Engine) -> Any:
    first = _counter(e, name="reused")
    e.get(first.increment.remote(), PATIENCE)
    e.kill(first)
    made: list[Any] = []

    def again() -> bool:
        if not made and ends(e, lambda: made.append(_counter(e, name="reused"))) is not None:
            return False
        found = ends(e, lambda: e.get(made[0].increment.remote(), PATIENCE))
        return isinstance(found, int) and found == 1

    return _until(again)


@scenario
def a_name_must_not_be_empty(e: Engine) -> Any:
    return ends(e, lambda: _counter(e, name=""))


@scenario
def actors_need_no_name(e: Engine) -> Any:
    first, second = _counter(e), _counter(e)
    e.get(first.increment.remote(), PATIENCE)
    return e.get(second.increment.remote(), PATIENCE)


# Concurrency groups


def _grouped(e: Engine) -> Any:
    class Grouped(Meeting):
        @e.grouped("io")
        def io_meet(self, seconds: float = 20) -> bool:
            return self.meet(seconds)

        @e.grouped("io")
        def io_crowd(self) -> None:
            self.crowd()

        @e.grouped("health")
        def health(self) -> str:
            return "well"

    return Grouped


@scenario
def a_group_runs_beside_the_others(e: Engine) -> Any:
    actor = e.create(_grouped(e), 2, concurrency_groups={"io": 1, "health": 1})
    return e.get([actor.meet.remote(), actor.io_meet.remote()], PATIENCE)


@scenario
def a_busy_actor_answers_by_another_group(e: Engine) -> Any:
    actor = e.create(_grouped(e), 2, concurrency_groups={"io": 1, "health": 1})
    busy = actor.meet.remote()
    health = e.get(actor.health.remote(), PATIENCE)
    return health, e.get([busy, actor.io_meet.remote()], PATIENCE)


@scenario
def calls_of_a_group_run_at_a_time(e: Engine) -> Any:
    actor = e.create(_grouped(e), 2, concurrency_groups={"io": 2, "health": 1})
    return e.get([actor.io_meet.remote(), actor.io_meet.remote()], PATIENCE)


@scenario
def a_group_is_limited(e: Engine) -> Any:
    actor = e.create(_grouped(e), 2, concurrency_groups={"io": 1, "health": 1})
    e.get([actor.io_crowd.remote() for _ in range(4)], PATIENCE)
    return e.get(actor.at_most.remote(), PATIENCE)


@scenario
def a_group_that_is_not_declared(e: Engine) -> Any:
    return ends(e, lambda: e.get(e.create(_grouped(e), 2, concurrency_groups={"io": 1}).health.remote(), 20))


# Pools


def _pool(e: Engine, size: int = 2) -> Any:
    return e.pool([e.create(Worker) for _ in range(size)])


@scenario
def map_keeps_the_order(e: Engine) -> Any:
    return list(_pool(e).map(lambda actor, value: actor.double.remote(value), range(7)))


@scenario
def map_unordered_gives_what_is_ready(e: Engine) -> Any:
    gate = _notes(e)
    results = _pool(e).map_unordered(lambda actor, value: actor.slowly.remote(value, gate), [1, 2, 4])
    first = [next(results), next(results)]
    _touch(gate)
    return first, list(results)


@scenario
def map_of_nothing(e: Engine) -> Any:
    return list(_pool(e).map(lambda actor, value: actor.double.remote(value), []))


@scenario
def submit_and_get_next(e: Engine) -> Any:
    pool = _pool(e)
    for value in range(5):
        pool.submit(lambda actor, value: actor.double.remote(value), value)
    results = []
    while pool.has_next():
        results.append(pool.get_next())
    return results


@scenario
def get_next_of_nothing(e: Engine) -> Any:
    pool = _pool(e)
    return pool.has_next(), ends(e, pool.get_next)


@scenario
def get_next_with_a_timeout(e: Engine) -> Any:
    pool, gate = _pool(e), _notes(e)
    pool.submit(lambda actor, value: actor.slowly.remote(value, gate), 1)
    early = ends(e, lambda: pool.get_next(timeout=SHORT))
    _touch(gate)
    return early, pool.get_next(timeout=PATIENCE)


@scenario
def get_next_unordered(e: Engine) -> Any:
    pool, gate = _pool(e), _notes(e)
    for value in (1, 2):
        pool.submit(lambda actor, value: actor.slowly.remote(value, gate), value)
    first = pool.get_next_unordered(timeout=PATIENCE)
    _touch(gate)
    return first, pool.get_next_unordered(timeout=PATIENCE)


@scenario
def free_actors_leave_and_join(e: Engine) -> Any:
    pool = _pool(e)
    taken = [pool.pop_idle(), pool.pop_idle()]
    free = pool.has_free(), pool.pop_idle()
    pool.push(taken[0])
    return [each is not None for each in taken], free, pool.has_free()


@scenario
def an_error_of_a_pool_is_its_calls(e: Engine) -> Any:
    pool = _pool(e)
    for value in range(3):
        pool.submit(lambda actor, value: actor.fails.remote(value), value)
    return [ends(e, lambda: pool.get_next(timeout=PATIENCE)) for _ in range(3)]


# Generators


@scenario
def a_generator_is_a_stream(e: Engine) -> Any:
    actor = e.create(Streaming)
    return list(e.stream(actor.numbers, 100))


@scenario
def an_empty_stream(e: Engine) -> Any:
    actor = e.create(Streaming)
    return list(e.stream(actor.nothing))


@scenario
def an_asynchronous_generator_is_a_stream(e: Engine) -> Any:
    actor = e.create(Asynchronous)
    return list(e.stream(actor.numbers, 10))


@scenario
def a_stream_that_breaks_gives_its_items_first(e: Engine) -> Any:
    actor = e.create(Streaming)
    items: list[Any] = []

    def take() -> None:
        items.extend(e.stream(actor.breaks, 0))

    def all_of_three() -> None:
        for item in e.stream(actor.breaks, 3):
            items.append(item)

    return ends(e, take), ends(e, all_of_three), items


@scenario
def large_items(e: Engine) -> Any:
    actor = e.create(Streaming)
    return [(len(block), block[0]) for block in e.stream(actor.blocks, 4, 1 << 20)]


@scenario
def a_stream_that_is_left_ends(e: Engine) -> Any:
    notes = _notes(e)
    actor = e.create(Streaming, notes)
    stream = e.stream(actor.endless)
    found = next(stream)
    e.stop_stream(stream)
    return found, _until(Path(notes).exists)


@scenario
def items_come_while_the_generator_runs(e: Engine) -> Any:
    actor = e.create(Streaming, _notes(e))
    stream = e.stream(actor.endless)
    found = [next(stream) for _ in range(3)]
    e.stop_stream(stream)
    e.kill(actor)
    return found


# wait


@scenario
def wait_returns_what_has_ended(e: Engine) -> Any:
    quick, slow, gate = _counter(e), _counter(e), _notes(e)
    futures = [slow.wait_for.remote(gate), quick.increment.remote()]
    ended, left = e.wait(futures, 1, PATIENCE)
    _touch(gate)
    e.get(futures, PATIENCE)
    return [futures.index(f) for f in ended], [futures.index(f) for f in left]


@scenario
def wait_for_all(e: Engine) -> Any:
    counter = _counter(e)
    futures = [counter.increment.remote() for _ in range(5)]
    ended, left = e.wait(futures, 5, PATIENCE)
    return len(ended), len(left)


@scenario
def wait_with_a_timeout(e: Engine) -> Any:
    slow, gate = _counter(e), _notes(e)
    future = slow.wait_for.remote(gate)
    ended, left = e.wait([future], 1, SHORT)
    _touch(gate)
    e.get(future, PATIENCE)
    return len(ended), len(left)


@scenario
def wait_counts_failed_calls(e: Engine) -> Any:
    ended, left = e.wait([_counter(e).raises.remote("")], 1, PATIENCE)
    return len(ended), len(left)


@scenario
def wait_for_one_twice(e: Engine) -> Any:
    future = _counter(e).increment.remote()
    return ends(e, lambda: e.wait([future, future], 1, PATIENCE))


@scenario
def wait_for_too_many(e: Engine) -> Any:
    future = _counter(e).increment.remote()
    return ends(e, lambda: e.wait([future], 2, PATIENCE))


# Cancelling


@scenario
def a_waiting_call_is_cancelled(e: Engine) -> Any:
    counter, gate = _counter(e), _notes(e)
    running, waiting = counter.wait_for.remote(gate), counter.append.remote("ran")
    _began(gate)
    e.cancel(waiting)
    e.wait([waiting], timeout=60.0)  # until the request has arrived; Ray may answer after the gate only
    _touch(gate)
    return (
        ends(e, lambda: e.get(waiting, PATIENCE)),
        e.get(running, PATIENCE),
        e.get(counter.lines.remote(), PATIENCE),
    )


@scenario
def a_running_coroutine_is_cancelled(e: Engine) -> Any:
    actor = e.create(Asynchronous)
    future = actor.forever.remote()
    e.get(actor.begun.remote(), PATIENCE)
    e.cancel(future)
    return ends(e, lambda: e.get(future, PATIENCE)), e.get(actor.was_cancelled.remote(), PATIENCE)


@scenario
def a_finished_call_is_not_cancelled(e: Engine) -> Any:
    future = _counter(e).increment.remote()
    e.wait([future], timeout=PATIENCE)
    e.cancel(future)
    return e.get(future, PATIENCE)
