"""Checkpoints: complete or not there, newest first.

A checkpoint is one .npz file named after the number of steps it has behind it.
It is written beside its final name, flushed, and renamed, so a process killed
at any moment leaves either the whole file or none.
"""

import os
import re
import sys
import zipfile
from pathlib import Path

import numpy as np

NAME = re.compile(r"step-(\d{8})\.npz")
KEEP = 3

Arrays = dict[str, np.ndarray]


def save(directory: Path, step: int, arrays: Arrays) -> None:
    """Write the checkpoint of a step and drop all but the newest few."""
    target = directory / f"step-{step:08d}.npz"
    write_atomically(target, lambda file: np.savez(file, **arrays))
    for _, old in _newest_first(directory)[KEEP:]:
        old.unlink()


def newest(directory: Path) -> int:
    """Return the step of the newest checkpoint that can be read whole, 0 if none can."""
    for step, path in _newest_first(directory):
        try:
            _read(path)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            print(f"skip checkpoint {path.name}: {error}", file=sys.stderr, flush=True)
            continue
        return step
    return 0


def load(directory: Path, step: int) -> Arrays:
    """Read the checkpoint of a step."""
    return _read(directory / f"step-{step:08d}.npz")


def write_atomically(target: Path, write) -> None:
    """Have write(file) fill the target, which appears whole or not at all."""
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    with partial.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(target)


def _read(path: Path) -> Arrays:
    # Reading every member also verifies its CRC.
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _newest_first(directory: Path) -> list[tuple[int, Path]]:
    found = [(NAME.fullmatch(path.name), path) for path in directory.iterdir()]
    steps = [(int(match[1]), path) for match, path in found if match]
    return sorted(steps, reverse=True)
