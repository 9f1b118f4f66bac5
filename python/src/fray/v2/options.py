"""How actors are created, apart from what their constructors are called with.

Creating them is left to clients.
"""

from __future__ import annotations

import inspect
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Literal

from fray.cluster import EnvironmentConfig, ResourceConfig


class Lifetime(StrEnum):
    """What an actor outlives."""

    NON_DETACHED = "non_detached"
    """It ends with the job that created it, or with the client."""
    DETACHED = "detached"
    """It lives until it is deleted."""


@dataclass(frozen=True, kw_only=True)
class ActorOptions:
    """How an actor is created, beside its name and its resources.

        client.create_actor(Counter, 40, name="counter", options=ActorOptions(max_restarts=3))

    Raises:
        TypeError: there is no such option, or the value has another type.
        ValueError: the value is not allowed.
    """

    environment: EnvironmentConfig | None = None
    """Where it runs, as of a job."""
    get_if_exists: bool = False
    """Whether an actor of that name that lives is the answer, instead of an error. However many clients ask
    at a time, there is one."""
    lifetime: Literal["non_detached", "detached"] | Lifetime = Lifetime.NON_DETACHED
    """Whether it ends with the job or the client that creates it, or lives until it is deleted."""
    max_restarts: int = -1
    """How often it is started again when it fails; -1: without end. Losing its machine does not count. One
    that exits with status 0 is not started again."""
    max_concurrency: int | None = None
    """How many calls run at a time; None: 1, or 1000 if it has async methods."""
    concurrency_groups: Mapping[str, int] = field(default_factory=dict)
    """How many calls at a time of the methods that `fray.rpc.method` puts into each group."""

    def __post_init__(self) -> None:
        _want("environment", self.environment, EnvironmentConfig, optional=True)
        _want("get_if_exists", self.get_if_exists, bool)
        _want("lifetime", self.lifetime, str)
        if self.lifetime not in tuple(Lifetime):
            raise ValueError(f"lifetime is {self.lifetime!r}; it must be {_LIFETIMES}")
        _want("max_restarts", self.max_restarts, int)
        if self.max_restarts < -1:
            raise ValueError(f"max_restarts is {self.max_restarts}; it must be -1, for no end, or more")
        _want("max_concurrency", self.max_concurrency, int, optional=True)
        _want("concurrency_groups", self.concurrency_groups, Mapping)
        for group, limit in self.concurrency_groups.items():
            if not isinstance(group, str) or not group:
                raise TypeError(f"concurrency_groups has the key {group!r}; want the name of a group")
            _want(f"concurrency_groups[{group!r}]", limit, int)
            _at_least_one(f"concurrency_groups[{group!r}]", limit)
        if self.max_concurrency is not None:
            _at_least_one("max_concurrency", self.max_concurrency)

    @property
    def detached(self) -> bool:
        """Whether it outlives what creates it."""
        return self.lifetime == "detached"


_LIFETIMES = " or ".join(repr(lifetime.value) for lifetime in Lifetime)
_NAMES = frozenset(each.name for each in fields(ActorOptions))
_BY_POSITION = "pass a constructor's argument of this name by position, or through fray.v2.Actor"


def options_of(
    actor_class: Callable[..., Any],
    resources: ResourceConfig,
    options: ActorOptions | None,
    names: Iterable[str],
) -> ActorOptions:
    """Return the options of an actor that is to be created so; `names` are of its constructor's arguments.

    Raises:
        TypeError: one of them is no such argument.
    """
    if not callable(actor_class):
        raise TypeError(f"{actor_class!r} makes no actors; give a class")
    _want("resources", resources, ResourceConfig, hint=_BY_POSITION)
    _want("options", options, ActorOptions, optional=True, hint=_BY_POSITION)
    for name in names:
        if name in _NAMES and not _takes(actor_class, name):
            kind = getattr(actor_class, "__name__", repr(actor_class))
            raise TypeError(
                f"{kind} takes no argument {name!r}; as an option of the actor give "
                f"options=ActorOptions({name}=...)"
            )
    return options or ActorOptions()


def name_of(actor_class: Callable[..., Any], name: str | None, options: ActorOptions) -> str:
    """Return the name of an actor, which is made up where none is given.

    Raises:
        TypeError: it is no text.
        ValueError: an actor without a name is to be one that exists.
    """
    _want("name", name, str, optional=True, hint=_BY_POSITION)
    if name is not None:
        return name
    if options.get_if_exists:
        raise ValueError("get_if_exists finds an actor by its name; give one")
    of_class = re.sub(r"[^a-z0-9]+", "-", getattr(actor_class, "__name__", "actor").lower()).strip("-")
    return f"{of_class[:40] or 'actor'}-{secrets.token_hex(5)}"


def _takes(actor_class: Callable[..., Any], name: str) -> bool:
    """Return whether a constructor may take an argument of that name."""
    try:
        parameters = inspect.signature(actor_class).parameters.values()
    except (TypeError, ValueError):
        return True  # of a class that is written in C
    return any(p.kind is p.VAR_KEYWORD or (p.name == name and p.kind in _BY_NAME) for p in parameters)


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _at_least_one(name: str, limit: int) -> None:
    if limit < 1:
        raise ValueError(f"{name} is {limit}; it must be at least 1")


def _want(name: str, value: Any, kind: Any, optional: bool = False, hint: str = "") -> None:
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))  # a bool is an int, too
    if fits or (optional and value is None):
        return
    wanted = f"{kind.__name__}{' or None' if optional else ''}"
    raise TypeError(f"{name} is {value!r}, want {wanted}{f'; {hint}' if hint else ''}")
