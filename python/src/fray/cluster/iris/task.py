"""Runs in each task of a job on Iris: `python -m fray.cluster.iris.task [command]`.

It sets fray's variables from Iris's own, then becomes the command, or calls the callable that was shipped.
What the callable recorded about its failure is written as the last line of the task's output, where clients
find it: Iris itself keeps an exit status only.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from fray.cluster.context import JobContext
from fray.cluster.iris.logs import RECORD
from fray.cluster.iris.names import Names, own_namespace
from fray.cluster.iris.ship import CALLABLE, IDENTITY
from fray.cluster.iris.spec import own_spec, parse, task_of
from fray.cluster.types import JobId, Namespace

_TERMINATION = ".fray/termination"
_UNKNOWN_PROGRAM, _NOT_EXECUTABLE = 127, 126  # as in shells


def main(words: list[str]) -> int:
    """Run a command, or the callable without one, and return the exit status."""
    folder = Path(os.environ.get("IRIS_WORKDIR", "."))
    os.environ.update(variables(os.environ, folder))
    if words:
        return _become(words)
    from fray import _callable

    try:
        return _callable.main()
    finally:
        _report(folder / _TERMINATION)


def variables(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return fray's variables for a task with Iris's variables and this working directory.

    Raises:
        SystemExit: it is no task of Iris's.
    """
    task = task_of(environ)
    spec = own_spec(environ)
    if task is None or not spec:
        raise SystemExit(
            "fray: this is no task of Iris's: IRIS_TASK_ID and IRIS_CONTROLLER_ADDRESS are not set"
        )
    namespace = environ.get("FRAY_NAMESPACE") or own_namespace(parse(spec, environ).user, task.job)
    found = JobContext(
        job_id=JobId(task.job),
        job_name=Names(task.job.split("/")[1], namespace).name(task.job),
        namespace=Namespace(namespace),
        attempt=task.attempt + 1,
        task_index=task.index,
        num_tasks=task.num_tasks,
    ).variables()
    found["FRAY_CLUSTER_SPEC"] = found["FRAY_CLIENT_SPEC"] = spec
    found["FRAY_HOST_ADDRESS"] = environ.get("IRIS_ADVERTISE_HOST", "")
    found["FRAY_TERMINATION_FILE"] = str(folder / _TERMINATION)
    for name, path in (("FRAY_CALLABLE", CALLABLE), ("FRAY_ACTOR_IDENTITY", IDENTITY)):
        if (folder / path).is_file():
            found[name] = str(folder / path)
    for name, value in environ.items():
        if name.startswith("IRIS_PORT_") and value != "0":  # 0: whichever is free
            found[f"FRAY_PORT_{name.removeprefix('IRIS_PORT_').replace('-', '_')}"] = value
    return found


def _become(words: list[str]) -> int:
    try:
        os.execvp(words[0], words)
    except FileNotFoundError:
        sys.stderr.write(f"fray: there is no program {words[0]} in the task's image\n")
        return _UNKNOWN_PROGRAM
    except OSError as err:
        sys.stderr.write(f"fray: {words[0]} cannot be executed: {err}\n")
        return _NOT_EXECUTABLE


def _report(path: Path) -> None:
    """Write what was recorded in a file, if anything."""
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError):
        return
    sys.stdout.flush()
    sys.stderr.write(f"{RECORD}{json.dumps(record)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
