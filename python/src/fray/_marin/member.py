"""One actor as it is made: what it knows of itself, and how it ends its process."""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fray import _host_serve
from fray._marin.handle import Handle
from fray.actor import ActorContext, _reset_current_actor, _set_current_actor
from fray.cluster.current import current_cluster
from fray.v2.actor import handle_of


@dataclass(frozen=True)
class Place:
    """Which actor of its group it is."""

    name: str
    """What it is registered as."""
    group: str
    index: int = 0


def make(
    place: Place, actor_class: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Make an actor in the process that hosts it, whose constructor may call current_actor."""
    has_process = place.name in json.loads(os.environ.get("FRAY_ACTOR_NAMES") or "[]")
    over = threading.Event() if has_process else None
    context = ActorContext(Handle(handle_of(current_cluster(), place.name)), place.index, place.group, over)
    actor = construct(context, actor_class, args, kwargs)
    if over is not None:
        threading.Thread(
            target=_end_process, args=[context, over], name="fray actor's end", daemon=True
        ).start()
    return actor


def construct(
    context: ActorContext, actor_class: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Call a constructor that may call current_actor."""
    token = _set_current_actor(context)
    try:
        return actor_class(*args, **kwargs)
    finally:
        _reset_current_actor(token)


def _end_process(context: ActorContext, over: threading.Event) -> None:
    """Wait until the actor asks for its end, and end its host; with status 1 if it failed."""
    over.wait()
    if not context._errors:
        _host_serve.leave()
        return
    for err in context._errors:
        traceback.print_exception(err)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)  # so that callers learn at once that their calls may have run
