"""Environments that uv makes of a project's uv.lock, each once on a node."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from fray.cluster.project import UV
from fray.cluster.ray.process import Exit
from fray.cluster.types import TerminationCause

Run = Callable[[Sequence[str], Mapping[str, str], Path], tuple[Exit, Sequence[str]]]
"""Runs a program in a directory, and returns how it ended and its last lines."""

_FILES = ("uv.lock", "pyproject.toml", "uv.toml", ".python-version")
_TAIL = 3  # lines of uv in a reason


class SetupError(Exception):
    """A task cannot be prepared. The cause, if there is one, says that it never can."""

    def __init__(self, message: str, cause: TerminationCause | None = None) -> None:
        super().__init__(message)
        self.cause = cause


def key_of(project: Path, uv: UV, bundle: str) -> str:
    """Return the name of an environment: of all that it follows from.

    A lock may install directories of the project, so the bundle counts where a source is no index.
    """
    hashed = hashlib.sha256(repr((uv, sys.version_info[:2], platform.machine())).encode())
    for name in _FILES:
        with contextlib.suppress(FileNotFoundError):
            content = (project / name).read_bytes()
            hashed.update(f"{name} {len(content)}\n".encode() + content)
            if name == "uv.lock" and any(f"{kind} = ".encode() in content for kind in ("path", "directory")):
                hashed.update(bundle.encode())
    return hashed.hexdigest()


def words_of(program: str, uv: UV) -> list[str]:
    """Return the command that installs a project's dependencies, but not the project."""
    words = [program, "sync", "--frozen", "--no-install-project", "--no-editable", "--no-progress"]
    if "dev" not in uv.groups:
        words.append("--no-dev")
    words += [word for extra in uv.extras for word in ("--extra", extra)]
    words += [word for group in uv.groups for word in ("--group", group)]
    return words + (["--python", uv.python] if uv.python else [])


def build(home: Path, project: Path, uv: UV, bundle: str, environ: Mapping[str, str], run: Run) -> Path:
    """Return the environment of a project, which is made unless the node has it.

    Raises:
        SetupError: the project has no lock, uv is not on the node, or failed; then with its last lines.
    """
    if not (project / "uv.lock").is_file():
        raise SetupError("the project has no uv.lock; run uv lock", TerminationCause.PACKAGE_MISSING)
    venv = home / "venvs" / key_of(project, uv, bundle)
    done = venv.with_suffix(".built")
    if done.exists():
        return venv
    program = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        raise SetupError(
            "the project has a uv.lock, and uv is not on the Ray node; install it there: pip install uv",
            TerminationCause.PROGRAM_MISSING,
        )
    venv.parent.mkdir(parents=True, exist_ok=True)
    with _locked(venv.with_suffix(".lock")):
        if done.exists():
            return venv  # by another task, while this one waited
        shutil.rmtree(venv, ignore_errors=True)
        own = {"UV_PROJECT_ENVIRONMENT": str(venv), "VIRTUAL_ENV": str(venv), "NO_COLOR": "1"}
        end, tail = run(words_of(program, uv), {**environ, **own}, project)
        if end.code != 0:
            text = "; ".join(line.strip() for line in tail[-_TAIL:])
            raise SetupError(f"uv sync: {end.reason}: {text}", TerminationCause.PACKAGE_MISSING)
        done.touch()
    return venv


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
