"""Directories of checkpoints: `global_step_N` has the state after exactly N updates, and appears whole.

A checkpoint is written to a hidden directory beside its place, and renamed once all of it is on disk. Its
`run.json` has what belongs to the run: step, versions of weights, the position in the data, seeds.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MANIFEST = "run.json"

_REPLACED = "replaced-"  # how a checkpoint is called until another one has its name
_NAME = re.compile(r"global_step_(0|[1-9][0-9]*)", re.ASCII)
_log = logging.getLogger("fray.rl")


class CheckpointError(Exception):
    """A checkpoint is missing or cannot be used; the message has its path."""


def checkpoint_name(step: int) -> str:
    """Return the name of the checkpoint of a step."""
    return f"global_step_{step}"


def step_of(name: str) -> int | None:
    """Return the step of a checkpoint's name, None of any other name."""
    matched = _NAME.fullmatch(name)
    return int(matched[1]) if matched else None


def latest(names: Iterable[str]) -> str | None:
    """Return the name of the highest step, compared as numbers; other names do not count."""
    steps = {step: name for name in names if (step := step_of(name)) is not None}
    return steps[max(steps)] if steps else None


def find_latest_checkpoint(folder: str | Path) -> Path | None:
    """Return the newest checkpoint of a directory, None if it has none or is not there."""
    root = Path(folder)
    if not root.is_dir():
        return None
    found = latest(entry.name for entry in root.iterdir() if entry.is_dir())
    return None if found is None else root / found


def resume_path(mode: str, folder: str | Path, path: str = "") -> Path | None:
    """Return the checkpoint that a run begins with, None for a fresh run.

    Args:
        mode: "disable", "auto" (the newest of the folder, if there is one) or "from_path".
        folder: where the run keeps its checkpoints.
        path: the checkpoint of "from_path".

    Raises:
        CheckpointError: the checkpoint of "from_path" is not there.
        ValueError: the mode is none of these.
    """
    match mode:
        case "disable":
            return None
        case "auto":
            return find_latest_checkpoint(folder)
        case "from_path":
            if not path:
                raise CheckpointError('resume.mode is "from_path": set resume.resume_path to a checkpoint')
            if not Path(path).is_dir():
                raise CheckpointError(f"resume.resume_path: there is no directory {path}")
            return Path(path)
    raise ValueError(f"resume.mode: want disable, auto or from_path, got {mode!r}")


def partial_path(folder: str | Path, step: int) -> Path:
    """Return a new hidden path beside a checkpoint's place, to write it to."""
    return Path(folder) / f".{checkpoint_name(step)}.tmp-{uuid.uuid4().hex[:8]}"


def publish(partial: Path, folder: str | Path, step: int) -> Path:
    """Make a written checkpoint appear under its name, whole, and return its path.

    One that has the name already is replaced.
    """
    target = Path(folder) / checkpoint_name(step)
    sync_tree(partial)
    replaced = target.with_name(f".{target.name}.{_REPLACED}{uuid.uuid4().hex[:8]}")
    if target.is_dir():
        target.rename(replaced)  # between the two names `clean` gives it its own again
    partial.rename(target)
    sync_directory(target.parent)
    if replaced.is_dir():
        _remove(replaced)
    return target


def remove_previous(folder: str | Path, step: int) -> list[Path]:
    """Remove the checkpoints of earlier steps than this one, which must be there. Returns them."""
    root = Path(folder)
    if not (root / checkpoint_name(step)).is_dir():
        raise CheckpointError(f"{root / checkpoint_name(step)} is not there; earlier checkpoints are kept")
    earlier = [
        entry for entry in root.iterdir() if (found := step_of(entry.name)) is not None and found < step
    ]
    for entry in sorted(earlier):
        _hide(entry)
    return sorted(earlier)


def clean(folder: str | Path) -> None:
    """Remove what interrupted writes and removals have left. Call it only where no other process writes.

    A checkpoint that was about to be replaced, and is not, has its name again.
    """
    root = Path(folder)
    for entry in root.glob(".global_step_*") if root.is_dir() else ():
        name, _, kind = entry.name.removeprefix(".").partition(".")
        if kind.startswith(_REPLACED) and not (root / name).exists():
            entry.rename(root / name)
            sync_directory(root)
        else:
            shutil.rmtree(entry, ignore_errors=True)


def read_manifest(checkpoint: str | Path) -> dict[str, Any]:
    """Return the run.json of a checkpoint, an empty one if it has none.

    Raises:
        CheckpointError: there is no such directory, or its run.json cannot be read.
    """
    root = Path(checkpoint)
    if not root.is_dir():
        raise CheckpointError(f"there is no checkpoint {root}")
    value = read_json(root / MANIFEST, {})
    if not isinstance(value, dict):
        raise CheckpointError(f"{root / MANIFEST} is no JSON object")
    return value


def read_json(path: Path, default: Any) -> Any:
    """Return the value of a JSON file, the default if there is none.

    Raises:
        CheckpointError: it cannot be read.
    """
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return default
    except (OSError, ValueError) as err:
        raise CheckpointError(f"{path} cannot be read: {err}") from err


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: to a hidden one beside it, which is renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.tmp-{uuid.uuid4().hex[:8]}")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Have the names in a directory survive a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(path: Path) -> None:
    """Have all files of a directory survive a crash of the machine."""
    for folder, _, files in os.walk(path):
        for name in files:
            descriptor = os.open(Path(folder) / name, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_directory(Path(folder))


def _hide(checkpoint: Path) -> None:
    """Remove a directory so that a half removed one is never taken for a checkpoint."""
    hidden = checkpoint.with_name(f".{checkpoint.name}.old-{uuid.uuid4().hex[:8]}")
    checkpoint.rename(hidden)
    _remove(hidden)


def _remove(hidden: Path) -> None:
    shutil.rmtree(hidden, ignore_errors=True)
    if hidden.exists():
        _log.warning("could not remove all of %s", hidden)
