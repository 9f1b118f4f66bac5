"""Hosts an actor of a class: `python -m fray.host [module:Class]`.

It is what an actor_service without a command runs. These variables configure it:

- FRAY_ACTOR_CLASS: the class, unless it is the argument: "package.module:Class", or a function instead.
- FRAY_ACTOR_ARGS: a JSON object of what the constructor is called with, by name. If its first parameter
  is called `ctx` it gets an ActorContext besides.
- FRAY_ACTOR_NAMES: a JSON list of names to register it by. Without: the class's name in snake case. Of
  several tasks (FRAY_NUM_TASKS) the first has these names, and each the last with its index: "inference_0/3".
- FRAY_ACTOR_OPTIONS: a JSON object with "max_concurrency", "concurrency_groups" and "allow_pickle", or none.
- FRAY_PORT_ACTOR: the port to listen on; without, any.

It is ready (GET /readyz) once the actor was made and is registered; where no controller leads, once it was
made. On SIGTERM it is unregistered, calls that run are finished, and the exit status is 0. The status is 77
if the constructor raised, the class cannot be imported or does not fit the options, 2 if the variables are
invalid, and 1 if it could not be served, or registering it was rejected.
"""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from fray._host_run import Hosting, InvalidActorError, construct, host

_OPTIONS = {"max_concurrency": int, "allow_pickle": bool, "concurrency_groups": dict}


class SettingsError(Exception):
    """The variables, or the arguments, are invalid."""


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Host an actor until SIGTERM, and return the exit status."""
    signal.signal(signal.SIGTERM, _leave)  # until the server drains
    try:
        path, hosting = settings(arguments, environ)
        values = _json(environ, "FRAY_ACTOR_ARGS", {})
    except SettingsError as err:
        sys.stderr.write(f"fray: {err}\n")
        return 2
    return host(functools.partial(_make, path, values), hosting)


def _leave(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(0)


def _make(path: str, values: Mapping[str, Any]) -> Any:
    from fray._host_class import find

    try:
        actor_class = find(path)
    except (ImportError, SyntaxError) as err:
        raise InvalidActorError from err
    return construct(actor_class, (), values)


def settings(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[str, Hosting]:
    """Return the path of the class and how to host it.

    Raises:
        SettingsError: they are invalid.
    """
    if len(arguments) > 1:
        raise SettingsError(f"one class is expected, got {len(arguments)}: {' '.join(arguments)}")
    path = arguments[0] if arguments else environ.get("FRAY_ACTOR_CLASS", "")
    if not path:
        raise SettingsError(
            "there is no class to host: python -m fray.host module:Class, or set FRAY_ACTOR_CLASS"
        )
    names = _json(environ, "FRAY_ACTOR_NAMES", [])
    if not all(isinstance(name, str) and name for name in names):
        raise SettingsError("FRAY_ACTOR_NAMES has something that is no name")
    options = _json(environ, "FRAY_ACTOR_OPTIONS", {})
    for key, value in options.items():
        if key not in _OPTIONS:
            raise SettingsError(f'FRAY_ACTOR_OPTIONS has "{key}", which is none of {", ".join(_OPTIONS)}')
        if type(value) is not _OPTIONS[key]:
            raise SettingsError(f"FRAY_ACTOR_OPTIONS: {key} is {value!r}, want {_OPTIONS[key].__name__}")
    return path, Hosting(_names_of_task(tuple(names) or (_snake(path),), environ), **options)


def _names_of_task(names: tuple[str, ...], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names that one task of several has.

    Those of the replica are its first task's, or a caller would get now one, now another; each task has the
    last of them with its index besides: "inference_0/3".
    """
    tasks, task = environ.get("FRAY_NUM_TASKS") or "1", environ.get("FRAY_TASK_INDEX") or "0"
    if not tasks.isdecimal():
        raise SettingsError(f"FRAY_NUM_TASKS is {tasks!r}, want a number")
    if int(tasks) <= 1:
        return names
    own = f"{names[-1]}/{task}"
    return (*names, own) if task == "0" else (own,)


def _json(environ: Mapping[str, str], name: str, default: Any) -> Any:
    """Return what a variable holds, which must be of the type of the default."""
    text = environ.get(name, "")
    try:
        value = json.loads(text) if text else default
    except ValueError as err:
        raise SettingsError(f"{name} is no JSON: {err}") from err
    if type(value) is not type(default):
        raise SettingsError(f"{name} is no JSON {'object' if isinstance(default, dict) else 'list'}")
    return value


def _snake(path: str) -> str:
    """Return the name of a class as actors are called: "counter" for "counter:Counter"."""
    name = re.split(r"[:.]", path)[-1]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
