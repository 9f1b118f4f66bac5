"""What a task needs on its node before it runs: its project, its environment of uv, its callable."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fray.cluster.ray.records import Environment, Job
from fray.cluster.ray.store import Store
from fray.cluster.types import TerminationCause

PYTHON = "python"
"""The first word of a callable's command, which stands for the Python that runs it."""


class SetupError(Exception):
    """A task cannot be prepared. The cause, if there is one, says that it never can."""

    def __init__(self, message: str, cause: TerminationCause | None = None) -> None:
        super().__init__(message)
        self.cause = cause


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


def prepare(
    job: Job, environment: Environment, directory: Path, output: Callable[[bytes], None]
) -> Prepared:
    """Make what a task needs, below a directory of its own; `output` gets what the programs write that do so.

    Raises:
        SetupError: it cannot be made.
    """
    del output, environment
    launch = job.launch
    work = directory / "work"
    work.mkdir()
    words, variables, python_path = launch.words, {}, ()
    if launch.callable:
        if importlib.util.find_spec("cloudpickle") is None:
            raise SetupError(
                f"{sys.executable} of the Ray node has no package cloudpickle, which callables need; install "
                "fray-ml[ray] there, or ship a project whose uv.lock has fray-ml",
                TerminationCause.PACKAGE_MISSING,
            )
        file = directory / "callable"
        try:
            file.write_bytes(Store(job.namespace).blob(launch.callable))
        except LookupError as err:
            raise SetupError(str(err)) from err
        variables["FRAY_CALLABLE"] = str(file)
        words = (sys.executable, *words[1:])
        python_path = (os.environ["FRAY_RAY_PACKAGE"],)
    return Prepared(words, work, variables, python_path)
