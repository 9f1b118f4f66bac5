"""Makes one actor and serves it until the process is asked to stop.

It is what `python -m fray.host` and the jobs of create_actor have in common. An actor that cannot be made
ends the process with status 77; why is the last that it writes, for people, and recorded for its agent. Here
nothing is imported that is slow and not needed at once.
"""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fray import _termination

CONSTRUCTION_FAILED = 77
"""The exit status of a host whose actor could not be made."""

_PACKAGE = __file__.removesuffix("_host_run.py")
_CLASS_PATH_ERROR = "fray._host_class.ClassPathError"  # the class path's own fault: there is no traceback
_FAILED = "fray: the actor could not be constructed: "
_FIRST_LINES, _LAST_LINES = 4, 13  # of a long traceback; agents keep 20 lines


@dataclass(frozen=True)
class Hosting:
    """How to host an actor."""

    names: tuple[str, ...]
    """What it is registered by."""
    max_concurrency: int | None = None
    """How many calls run at a time; None: as in ActorServer.register."""
    allow_pickle: bool = False
    concurrency_groups: Mapping[str, int] = field(default_factory=dict)
    """How many calls at a time of the methods of each group."""
    created: bool = False
    """A client created it, and may kill it; it runs the code of its callers, see ActorServer."""


class InvalidActorError(Exception):
    """An actor can never be made, in this attempt or another; the cause has why."""


def host_created(
    actor_class: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], hosting: Hosting
) -> None:
    """Host what create_actor asked for; the entrypoint of its job."""
    status = host(functools.partial(construct, actor_class, args, kwargs), hosting)
    if status:
        sys.exit(status)


def host(make: Callable[[], Any], hosting: Hosting) -> int:
    """Make an actor and serve it until SIGTERM, and return the exit status."""
    from fray._host_serve import begin_connecting, serve

    connecting = begin_connecting()  # while the constructor waits for its weights
    try:
        actor = make()
    except Exception as err:
        report(err)
        return CONSTRUCTION_FAILED
    connecting.join()
    try:
        return serve(actor, hosting)
    except (OSError, ValueError) as err:
        sys.stderr.write(f"fray: the actor cannot be served: {err}\n")
        return 1


def construct(actor_class: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a class; it gets an ActorContext first if its first parameter is called `ctx` or annotated so."""
    if not _takes_context(actor_class):
        return actor_class(*args, **kwargs)
    from fray.rpc.context import ActorContext

    return actor_class(ActorContext.from_environment(), *args, **kwargs)


def _takes_context(actor_class: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(actor_class).parameters.values()
    except (TypeError, ValueError):
        return False  # of a class that is written in C
    first = next(iter(parameters), None)
    if first is None or first.kind in (first.VAR_POSITIONAL, first.VAR_KEYWORD, first.KEYWORD_ONLY):
        return False
    named = getattr(first.annotation, "__name__", first.annotation)
    return first.name == "ctx" or str(named).rpartition(".")[2] == "ActorContext"


def report(err: BaseException) -> None:
    """Record why there is no actor, and write it for people."""
    from fray.cluster.types import TerminationCause

    cause = TerminationCause.ACTOR_UNMADE
    if isinstance(err, InvalidActorError):
        cause, err = TerminationCause.ACTOR_INVALID, err.__cause__ or err
    kind, message, text = error_of(err)
    _termination.record(cause, message, kind, "" if kind == _CLASS_PATH_ERROR else text)
    if kind == _CLASS_PATH_ERROR:
        sys.stderr.write(f"{_FAILED}{message}\n")
        sys.stderr.flush()
        return
    lines = text.splitlines()
    if len(lines) > _FIRST_LINES + _LAST_LINES:  # so that all is in the tail that is kept of a task's output
        lines[_FIRST_LINES:-_LAST_LINES] = ["  ..."]
    first = message.partition("\n")[0]
    sys.stderr.write("\n".join([f"{_FAILED}{kind}: {first}", *lines, ""]))
    sys.stderr.flush()


def error_of(err: BaseException) -> tuple[str, str, str]:
    """Return type, message and traceback of what a constructor raised, without the frames of this package."""
    frames = err.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        frames = frames.tb_next
    module = type(err).__module__
    kind = type(err).__qualname__ if module == "builtins" else f"{module}.{type(err).__qualname__}"
    return kind, str(err), "".join(traceback.format_exception(err.with_traceback(frames)))
