"""What a job needs on Iris besides its request: a bundle with fray and the project, its callable, its set-up.

A bundle is a zip archive that Iris unpacks into the working directory of each task. fray itself is in it, in
`.fray`, so that tasks run the version that launched them, wherever fray is installed or not.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import json
import logging
import os
import shlex
import threading
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fray import _pickling
from fray.cluster.errors import InvalidRequestError
from fray.cluster.iris.dialect import Dialect
from fray.cluster.iris.request import variables_of
from fray.cluster.iris.spec import Task
from fray.cluster.own_files import own_files
from fray.cluster.project import nearest_project
from fray.cluster.types import Command, EnvironmentConfig, JobRequest, PythonCall

MAX_BUNDLE = 25 << 20
"""Bytes of a bundle that Iris accepts."""
NEEDS = (
    "cloudpickle>=3.1",
    "grpcio-health-checking>=1.76",
    "grpcio-reflection>=1.76",
    "grpcio>=1.76",
    "msgpack>=1.1",
    "protobuf>=6.33,<8",
)
"""What fray depends on, which tasks install."""
FOLDER = ".fray"
CALLABLE = f"{FOLDER}/callable"
IDENTITY = f"{FOLDER}/identity.pem"
SETUP = "FRAY_IRIS_SETUP"
"""The variable by which a task knows how it was set up, so that its children are too."""
LAUNCH = "FRAY_IRIS_LAUNCH"
"""The variable that tells one launch of a job from another."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_RUN = (
    f'cd "$IRIS_WORKDIR"; export PYTHONPATH="$IRIS_WORKDIR/{FOLDER}${{PYTHONPATH:+:$PYTHONPATH}}"; '
    'exec "${IRIS_PYTHON:-python}" -u -m fray.cluster.iris.task "$@"'
)

_log = logging.getLogger("fray")

Body = dict[str, Any]


@dataclass(frozen=True)
class Setup:
    """How the tasks of a job are set up."""

    scripts: tuple[str, ...]
    image: str = ""


class Shipper:
    """Completes messages of requests for one controller."""

    def __init__(self, workspace: str | None, task: Task | None) -> None:
        """Make a shipper.

        Args:
            workspace: The project of requests that name none; None: the nearest one.
            task: The Iris task that this process is.
        """
        self._workspace, self._task = workspace, task
        self._lock = threading.Lock()
        self._known: set[str] = set()  # bundles that the controller has
        self._bundles: dict[str, tuple[str, bytes]] = {}  # by project

    def complete(
        self, body: Body, request: JobRequest, dialect: Dialect, own: Mapping[str, str], identity: str
    ) -> None:
        """Add entrypoint, environment and bundle to the message of a request.

        Args:
            body: The message.
            request: The request.
            dialect: What the controller speaks.
            own: Variables of fray's for the tasks.
            identity: The file by which the tasks' actors prove their namespace.

        Raises:
            PickleError: the callable cannot be pickled.
            InvalidRequestError: the project cannot be shipped.
        """
        wanted = request.environment or EnvironmentConfig()
        inherits = self._task is not None and wanted.inherit
        project = wanted.project or (None if self._task else self._workspace or nearest_project())
        setup = self._setup(wanted, project, inherits)
        variables = variables_of(request.resources) | (_passed_on(self._task) if inherits else {})
        variables |= {**wanted.env_vars, **own, SETUP: json.dumps([list(setup.scripts), setup.image])}
        body["environment"] = {"envVars": variables}
        body["entrypoint"] = _entrypoint(request.entrypoint.kind, identity)
        if dialect.scripts:
            body["environment"]["setupScripts"] = list(setup.scripts)
        else:
            body["entrypoint"]["setupCommands"] = [
                *setup.scripts,
                'source "${IRIS_VENV:-$IRIS_WORKDIR/.venv}/bin/activate"',
            ]
        if setup.image:
            body.setdefault("taskImage", setup.image)
        self._bundle(body, project)

    def sent(self, body: Body) -> None:
        """Note that a message was accepted, so that the controller has its bundle."""
        if "bundleBlob" in body:
            with self._lock:
                self._known.add(_id_of(base64.b64decode(body["bundleBlob"])))

    def _bundle(self, body: Body, project: str | None) -> None:
        if project is None and self._task is not None and self._task.bundle:
            body["bundleId"] = self._task.bundle
            return
        with self._lock:
            key = project or ""
            if key not in self._bundles or project is not None:  # a project may have changed
                data = bundle_of(project)
                self._bundles[key] = (_id_of(data), data)
            bundle_id, data = self._bundles[key]
            known = bundle_id in self._known
        if known:
            body["bundleId"] = bundle_id
        else:
            body["bundleBlob"] = base64.b64encode(data).decode()

    def _setup(self, wanted: EnvironmentConfig, project: str | None, inherits: bool) -> Setup:
        if inherits and project is None and not _asks(wanted):
            before = _setup_of(os.environ)
            if before is not None:
                return before
        return Setup((script(wanted, project),), wanted.image or "")


def bundle_of(project: str | None) -> bytes:
    """Return the zip archive of a project, or of none, with fray: the same bytes for the same files.

    Raises:
        InvalidRequestError: it is no directory, too large, or has a link that zip archives cannot hold.
    """
    content = io.BytesIO()
    sizes: dict[str, int] = {}
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        own = [(f"{FOLDER}/{name}", path) for name, path in own_files()]
        for name, path in [*own, *(_files_of(project) if project else ())]:
            data = path.read_bytes()
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o755 if path.stat().st_mode & 0o111 else 0o644) << 16
            archive.writestr(info, data)
            sizes[name] = len(data)
    size = content.tell()
    if size > MAX_BUNDLE:
        largest = ", ".join(
            f"{name} ({n >> 20} MiB)" for name, n in sorted(sizes.items(), key=lambda e: -e[1])[:3]
        )
        raise InvalidRequestError.of(
            "environment.project",
            f"the bundle of {project} has {size / (1 << 20):.1f} MiB, more than the {MAX_BUNDLE >> 20} MiB "
            "that Iris accepts; list in .gitignore what need not be shipped; the largest files are "
            f"{largest}",
        )
    return content.getvalue()


@functools.cache
def _files_of(project: str) -> list[tuple[str, Path]]:
    from fray.cluster.remote.bundle import files_of  # for programs that ship a project

    found = []
    for name in files_of(project):
        path = Path(project) / name
        if path.is_dir():
            raise InvalidRequestError.of(
                "environment.project",
                f"{name} is a symbolic link to a directory, which Iris's bundles cannot hold; copy what "
                "it points to, or ignore it",
            )
        found.append((name, path))
    return found


def script(wanted: EnvironmentConfig, project: str | None) -> str:
    """Return the script that sets a task up: a virtual environment with the project's packages and fray's.

    Raises:
        InvalidRequestError: extras or groups are asked for, and no uv.lock has them.
    """
    locked = project is not None and (Path(project) / "uv.lock").is_file()
    if _asks(wanted) and project is None:
        _log.warning("no project is shipped, so that extras and groups of environments are left out")
    elif _asks(wanted) and not locked:
        raise InvalidRequestError.of(
            "environment", f"the project {project} has no uv.lock, which extras and groups need; run uv lock"
        )
    python = wanted.python or _pickling.python_version()
    lines = [
        "set -e",
        'cd "$IRIS_WORKDIR"',
        'venv="${IRIS_VENV:-$IRIS_WORKDIR/.venv}"',
    ]
    if locked:
        flags = [f"--extra {shlex.quote(each)}" for each in wanted.extras]
        flags += [f"--group {shlex.quote(each)}" for each in wanted.groups]
        sync = " ".join(["uv sync --frozen --no-dev", f"--python {shlex.quote(python)}", *flags])
        lines.append(f'UV_PROJECT_ENVIRONMENT="$venv" {sync}')
    else:
        lines.append(f'[ -x "$venv/bin/python" ] || uv venv --python {shlex.quote(python)} "$venv"')
    needs = " ".join(shlex.quote(each) for each in NEEDS)
    lines.append(f'uv pip install --python "$venv/bin/python" {needs}')
    return "\n".join(lines) + "\n"


def _entrypoint(kind: Command | PythonCall, identity: str) -> Body:
    files: dict[str, bytes] = {}
    words: Sequence[str] = ()
    if isinstance(kind, Command):
        words = kind.words
    else:
        files[CALLABLE] = _pickling.dump(kind)
    if identity:
        files[IDENTITY] = Path(identity).read_bytes()
    return {
        "runCommand": {"argv": ["bash", "-c", _RUN, "fray", *words]},
        "workdirFiles": {name: base64.b64encode(data).decode() for name, data in files.items()},
    }


def _passed_on(task: Task | None) -> dict[str, str]:
    """Return the variables that children of a task begin with: what its job was given, but for fray's."""
    given = task.variables if task else {}
    return {name: value for name, value in given.items() if not name.startswith("FRAY_")}


def _setup_of(environ: Mapping[str, str]) -> Setup | None:
    """Return how a task with these variables was set up, None if that is not known."""
    if environ.get(SETUP):
        scripts, image = json.loads(environ[SETUP])
        return Setup(tuple(scripts), image)
    if environ.get("IRIS_JOB_SETUP_SCRIPTS"):  # of a job that Iris's own client launched
        return Setup(tuple(json.loads(environ["IRIS_JOB_SETUP_SCRIPTS"])))
    return None


def _asks(wanted: EnvironmentConfig) -> bool:
    return bool(wanted.extras or wanted.groups)


def _id_of(data: bytes) -> str:
    """Return by what Iris knows a bundle."""
    return hashlib.sha256(data).hexdigest()
