"""Which project a request ships, and what uv is to install of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from fray.cluster.errors import InvalidRequestError
from fray.cluster.types import EnvironmentConfig


@dataclass(frozen=True)
class UV:
    """What uv installs from the uv.lock of a project."""

    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    python: str = ""


def nearest_project() -> str | None:
    """Return the nearest directory with a pyproject.toml at or above the working directory."""
    here = Path.cwd()
    for directory in (here, *here.parents):
        if (directory / "pyproject.toml").is_file():
            return str(directory)
    return None


def uv_of(wanted: EnvironmentConfig, project: str | None, in_job: bool) -> UV | None:
    """Return what uv is to install: extras of the project, or just its uv.lock; None: nothing.

    Raises:
        InvalidRequestError: it asks for something of a project that has no uv.lock.
    """
    found = UV(tuple(wanted.extras), tuple(wanted.groups), wanted.python or "")
    asked = asks(wanted)
    if project is not None:
        locked = (Path(project) / "uv.lock").is_file()
        if asked and not locked:
            problem = (
                f"the project {project} has no uv.lock, which extras, groups and python need; run uv lock"
            )
            raise InvalidRequestError.of("environment", problem)
        return found if locked else None
    if not asked:
        return None
    if in_job and wanted.inherit and "UV_PROJECT_ENVIRONMENT" in os.environ:
        return found  # of the parent's project
    return None


def asks(wanted: EnvironmentConfig) -> bool:
    """Report whether an environment asks for what only uv can give."""
    return bool(wanted.extras or wanted.groups or wanted.python)
