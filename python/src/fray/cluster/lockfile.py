"""What a project's uv.lock has of this package, and of others that are imported by the same name."""

from __future__ import annotations

import re
from pathlib import Path

from fray.cluster.errors import InvalidRequestError

_LOCKED = re.compile(r'^name = "(fray|marin-fray|fray-ml)"$', re.MULTILINE)


def check_lock(lock: Path) -> None:
    """Check that a project which has another package of the name has this one; without a file all is well.

    Raises:
        InvalidRequestError: it has another one only, so that no callable could run.
    """
    found = set(_LOCKED.findall(lock.read_text())) if lock.is_file() else set()
    if not found or "fray-ml" in found:
        return
    other = " and ".join(sorted(found))
    problem = (
        f"{lock} has {other}, which is another project's, and not fray-ml, which runs callables: "
        f"uv remove {other}, then uv add fray-ml"
    )
    raise InvalidRequestError.of("environment", problem)
