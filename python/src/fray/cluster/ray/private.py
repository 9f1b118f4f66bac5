"""Files that their user alone may read."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Write a file as a whole, whatever mode one had that is there already."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # of mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).rename(path)
    except BaseException:
        Path(name).unlink()
        raise
