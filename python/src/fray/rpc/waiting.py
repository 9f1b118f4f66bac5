"""Waiting for several calls at a time.

The standard library's concurrent.futures.wait and as_completed take futures as well. `wait` is as in Ray.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, TypeVar

from fray._latch import Latch
from fray.rpc._calling import selfcall as _selfcall
from fray.rpc._calling.ongoing import end_stuck
from fray.rpc.future import ActorFuture

T = TypeVar("T")

_WAKE = 0.5  # seconds; a thread that is being stopped notices only between two waits


def wait(
    futures: Iterable[ActorFuture[T]], num_returns: int = 1, timeout: float | None = None
) -> tuple[list[ActorFuture[T]], list[ActorFuture[T]]]:
    """Wait until some calls have ended, well or badly; return those, and the others.

    Both lists are in the order of `futures`. The first one has at most `num_returns`, of which there are more
    in the second list if more have ended, and fewer if the time was over.

    Args:
        futures: The calls, each once.
        num_returns: How many to wait for.
        timeout: The longest wait in seconds; None: without end. 0 does not wait.

    Raises:
        ValueError: a future is there twice, `num_returns` is not 1 up to their number, or `timeout` is
            negative.
        TypeError: one is no future of a call.
    """
    given = _checked(futures)
    if len(set(given)) < len(given):
        raise ValueError("a future is given twice; give each once")
    if timeout is not None and timeout < 0:
        raise ValueError(f"timeout is {timeout}; it must not be negative")
    if not given and num_returns > 0:
        return [], []
    if not 0 < num_returns <= len(given):
        raise ValueError(f"num_returns is {num_returns}; it must be 1 to {len(given)}, the number of futures")
    await_some(given, num_returns, None if timeout is None else monotonic() + timeout)
    ended = list(itertools.islice((future for future in given if future.done()), num_returns))
    chosen = set(ended)
    return ended, [future for future in given if future not in chosen]


def as_completed(futures: Iterable[ActorFuture[T]], timeout: float | None = None) -> Iterator[ActorFuture[T]]:
    """Yield futures as their calls end, well or badly, each once.

    Args:
        futures: The calls.
        timeout: The longest wait for all of them in seconds; None: without end.

    Raises:
        TimeoutError: the time was over before all had ended.
        TypeError: one is no future of a call.
    """
    until = None if timeout is None else monotonic() + timeout
    return _as_completed(list(dict.fromkeys(_checked(futures))), until, timeout)


def _as_completed(
    futures: Sequence[ActorFuture[T]], until: float | None, timeout: float | None
) -> Iterator[ActorFuture[T]]:
    ended: SimpleQueue[ActorFuture[T]] = SimpleQueue()
    callbacks = [(future, functools.partial(ended.put, future)) for future in futures]
    for future, callback in callbacks:
        future.on_done(callback)
    try:
        for left in range(len(futures), 0, -1):
            found = _next(ended, futures, until)
            if found is None:
                raise TimeoutError(f"{left} of {len(futures)} calls had not ended after {timeout} s")
            yield found
    finally:
        for future, callback in callbacks:
            future.off_done(callback)


def _next(
    ended: SimpleQueue[ActorFuture[T]], futures: Sequence[ActorFuture[T]], until: float | None
) -> ActorFuture[T] | None:
    for seconds in _turns(futures, until):
        with suppress(Empty):
            return ended.get(timeout=seconds)
    return None


def await_some(futures: Sequence[ActorFuture[Any]], count: int, until: float | None) -> bool:
    """Wait until so many of the calls have ended, or a time of time.monotonic; return whether they have."""
    if sum(future.done() for future in futures) >= count:
        return True
    enough, ended = Latch(), itertools.count(1)

    def one_more() -> None:
        if next(ended) >= count:
            enough.set()

    for future in futures:
        future.on_done(one_more)
    try:
        return any(enough.wait(seconds) for seconds in _turns(futures, until))
    finally:
        for future in futures:
            future.off_done(one_more)


def _turns(futures: Sequence[ActorFuture[Any]], until: float | None) -> Iterator[float]:
    """Yield how long to wait at a time, at least once; then end calls that wait for the running method."""
    for channel in {future.channel for future in futures if future.later and future.channel}:
        channel.flush()
    suspects: list[Any] | None = None
    while True:
        wake = _WAKE if suspects == [] else _selfcall.CHECK_INTERVAL
        yield wake if until is None else max(0.0, min(wake, until - monotonic()))
        if until is not None and monotonic() >= until:
            return
        if suspects is None:
            suspects = [found for future in futures for found in future.suspects()]
        end_stuck(suspects)


def _checked(futures: Iterable[ActorFuture[T]]) -> list[ActorFuture[T]]:
    if isinstance(futures, ActorFuture):
        raise TypeError("give a list of futures, not one")
    given = list(futures)
    for future in given:
        if not isinstance(future, ActorFuture):
            raise TypeError(f"{future!r} is no future of a call; give what .remote() returned")
    return given
