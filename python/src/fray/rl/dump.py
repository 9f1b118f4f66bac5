"""Files of values for debugging, which never fail the step that writes one."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fray.rl.config import setting

if TYPE_CHECKING:
    from fray.rl.nexrl_types import Formatter

_log = logging.getLogger("fray.rl")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.=-]+")
_LONGEST = 150  # characters of a file's name


class Dumps:
    """The directory that values are dumped to, `dump.path` of the configuration; without it there is none."""

    def __init__(self, directory: str | None) -> None:
        self._directory = Path(directory) if directory else None
        self._lock = threading.Lock()
        self._count = 0

    @classmethod
    def of(cls, config: Any) -> Dumps:
        """Return that of a configuration, None included."""
        return cls(setting(config, "dump.path") if config is not None else None)

    @property
    def wanted(self) -> bool:
        """Whether values are written at all."""
        return self._directory is not None

    def write(
        self, value: Any, keys: Sequence[str], step: int, formatter: Formatter | None = None
    ) -> str | None:
        """Write a value to step_STEP/KEYS-NUMBER.txt and return the path; None if that failed."""
        if self._directory is None:
            return None
        try:
            with self._lock:
                self._count += 1
                number = self._count
            text = formatter(value) if formatter is not None else _text(value)
            folder = self._directory / f"step_{step}"
            folder.mkdir(parents=True, exist_ok=True)
            name = _NOT_IN_NAMES.sub("_", "-".join(map(str, keys)))[:_LONGEST]
            path = folder / f"{name}-{number}.txt"
            self._replace(path, text)
        except Exception as err:
            _log.warning("%s could not be dumped: %s", "-".join(map(str, keys)), err)
            return None
        return str(path)

    def _replace(self, path: Path, text: str) -> None:
        partial = path.with_suffix(".tmp")
        try:
            partial.write_text(text, errors="replace")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def _text(value: Any) -> str:
    try:
        return json.dumps(value, indent=2, default=repr)
    except (TypeError, ValueError):
        return repr(value)
