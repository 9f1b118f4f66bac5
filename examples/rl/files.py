"""JSON files that are there whole or not at all."""

import json
import os
from pathlib import Path
from typing import Any


def write(target: Path, value: Any) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    with partial.open("w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(target)


def read(source: Path) -> Any:
    return json.loads(source.read_text())
