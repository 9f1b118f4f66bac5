"""Futures among the arguments of a call: the method gets their results.

Waiting for them is left to `_calling.route`, and encoding to `handle`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from fray.rpc.errors import ActorError
from fray.rpc.future import ActorFuture


def futures_among(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[ActorFuture[Any]]:
    """Return the arguments that are futures. Those within lists, maps and objects are not found."""
    found = [value for value in args if isinstance(value, ActorFuture)]
    if kwargs:
        found += [value for value in kwargs.values() if isinstance(value, ActorFuture)]
    return found


def without_futures(
    args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Return the arguments with None in the places of futures."""

    def other(value: Any) -> Any:
        return None if isinstance(value, ActorFuture) else value

    return tuple(map(other, args)), {name: other(value) for name, value in kwargs.items()}


def with_futures(
    others: tuple[Sequence[Any], Mapping[str, Any]], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Return other arguments, with the futures that are among these in their places."""

    def chosen(value: Any, other: Any) -> Any:
        return value if isinstance(value, ActorFuture) else other

    by_position = tuple(map(chosen, args, others[0]))
    return by_position, {name: chosen(value, others[1][name]) for name, value in kwargs.items()}


def resolved(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Return the arguments with the results of futures, which have ended, in the place of these.

    Raises:
        ActorError: one has failed. The error is that of the future, but for `ran`.
    """
    by_position = tuple(_resolved(value, f"args[{i}]") for i, value in enumerate(args))
    return by_position, {name: _resolved(value, f"kwargs.{name}") for name, value in kwargs.items()}


def _resolved(value: Any, path: str) -> Any:
    if not isinstance(value, ActorFuture):
        return value
    err = value.exception()
    if err is None:
        return value.result()
    error: ActorError = copy(err)
    error.ran = False  # this call, unlike the one that failed
    error.add_note(f"It was to be {path} of another call, which did not run.")
    raise error
