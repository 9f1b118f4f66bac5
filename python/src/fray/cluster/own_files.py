"""The files of the package fray itself, for clusters whose machines need not have it."""

from __future__ import annotations

from pathlib import Path

import fray

_KINDS = (".py", ".txt", ".typed")


def own_files() -> list[tuple[str, Path]]:
    """Return the files as they stand, with their names from `fray/` on, in order of these."""
    root = Path(fray.__file__).parent
    return [
        (f"fray/{path.relative_to(root).as_posix()}", path)
        for path in sorted(root.rglob("*"))
        if path.suffix in _KINDS and "__pycache__" not in path.parts
    ]
