"""Whether a call is sent again after it may have run, or after its method raised.

`retries` is one budget for both. Sending is left to `future` and `_calling.route`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from fray._pb import actor_pb2

Exceptions: TypeAlias = bool | Iterable[type[BaseException] | str]
"""All that a method raises, none, or some classes, given as such or as ApplicationError.type has them."""

ALL: Final = "*"
"""Stands for all classes."""
_MAX_BASES: Final = 32


def names_of(exceptions: Exceptions) -> frozenset[str]:
    """Return the names of exceptions, by which a peer knows them; ALL for all of them.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(exceptions, bool):
        return frozenset({ALL}) if exceptions else frozenset()
    if isinstance(exceptions, str) or not isinstance(exceptions, Iterable):
        raise TypeError(
            f"retry_exceptions is {exceptions!r}; give True, False or a list of exception classes"
        )
    return frozenset(map(_name_of, exceptions))


def _name_of(exception: object) -> str:
    if isinstance(exception, str) and exception:
        return exception
    if isinstance(exception, type) and issubclass(exception, BaseException):
        return type_name(exception)
    raise TypeError(f"retry_exceptions has {exception!r}; give exception classes, or their names")


def type_name(kind: type) -> str:
    """Return the name of a class, as ApplicationError.type has it."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def base_names(kind: type[BaseException]) -> list[str]:
    """Return the names of the exception classes that a class inherits from."""
    bases = [base for base in kind.__mro__[1:] if issubclass(base, BaseException)]
    return [type_name(base) for base in bases[:_MAX_BASES]]


def matches(names: frozenset[str], error: actor_pb2.Error) -> bool:
    """Return whether what a method raised is of one of these classes."""
    return ALL in names or error.type in names or not names.isdisjoint(error.bases)
