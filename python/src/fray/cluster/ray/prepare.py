"""What a task needs on its node before it runs: its project, its environment of uv, its callable."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fray.cluster.ray.records import Job, Started
from fray.cluster.ray.store import Store
from fray.cluster.ray.unpack import unpack
from fray.cluster.ray.venvs import Run, SetupError, build
from fray.cluster.types import TerminationCause


@dataclass(frozen=True)
class Prepared:
    """What there is now."""

    words: tuple[str, ...]
    directory: Path
    """Where the program begins."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Which the job's own win over."""
    python_path: tuple[str, ...] = ()
    """Directories that come first among those where modules are."""
    path: str = ""
    """A directory of programs that come first, "" if there is none."""

    def extend(self, environ: dict[str, str]) -> None:
        """Put its directories first in the variables that list some."""
        for name, added in (("PYTHONPATH", self.python_path), ("PATH", (self.path,) if self.path else ())):
            if added:
                environ[name] = os.pathsep.join([*added, *filter(None, [environ.get(name, "")])])


def prepare(job: Job, started: Started, directory: Path, base: Mapping[str, str], run: Run) -> Prepared:
    """Make what a task needs, below a directory of its own.

    Args:
        job: The job.
        started: The attempt, with what came with it.
        directory: An empty one, that is removed when the task has ended.
        base: The variables of programs that prepare it.
        run: Runs such a program.

    Raises:
        SetupError: it cannot be made.
    """
    environment, blobs = started.environment, _Blobs(Store(job.namespace), started.blobs)
    work = directory / "work"
    work.mkdir()
    variables: dict[str, str] = {}
    python_path: tuple[str, ...] = ()
    path = ""
    python = sys.executable
    if environment.bundle:
        unpack(blobs.get(environment.bundle), work)
        python_path = (str(work), str(work / "src"))
    if environment.uv is not None and environment.bundle:
        home = Path(os.environ["FRAY_RAY_HOME"])
        own = {**base, **environment.variables}
        venv = build(home, work, environment.uv, environment.bundle, own, run)
        variables = {"VIRTUAL_ENV": str(venv), "UV_PROJECT_ENVIRONMENT": str(venv)}
        path, python = str(venv / "bin"), str(venv / "bin" / "python")
    words = job.launch.words
    if job.launch.callable:
        _check_callables(Path(path).parent if path else None)
        file = directory / "callable"
        file.write_bytes(blobs.get(job.launch.callable))
        variables["FRAY_CALLABLE"] = str(file)
        words = (python, *words[1:])
        python_path = (*python_path, os.environ["FRAY_RAY_PACKAGE"])
    return Prepared(words, work, variables, python_path, path)


@dataclass(frozen=True)
class _Blobs:
    store: Store
    at_hand: Mapping[str, bytes]

    def get(self, sha256: str) -> bytes:
        try:
            return self.at_hand[sha256] if sha256 in self.at_hand else self.store.blob(sha256)
        except LookupError as err:
            raise SetupError(str(err)) from err


def _check_callables(venv: Path | None) -> None:
    """Raise SetupError unless a Python has what unpickles callables; fray itself is sent."""
    if venv is None:
        if importlib.util.find_spec("cloudpickle") is not None:
            return
        what = f"{sys.executable} of the Ray node has no package cloudpickle; install fray-ml[ray] there"
    else:
        if any(venv.glob("lib/python*/site-packages/cloudpickle")):
            return
        what = "the project's uv.lock has no package fray-ml; add it by uv add fray-ml"
    raise SetupError(f"callables cannot run: {what}", TerminationCause.PACKAGE_MISSING)
