"""The end of a run, as its controller records it: processes of the run that are started later end at once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fray.rl.config import ConfigError, setting

FILE = "ended.json"
"""The record's name, below `out`."""


@dataclass(frozen=True)
class End:
    """How a run has ended."""

    reason: str
    failed: bool
    step: int
    """How many updates were made."""


def end_of(config: Any, run: str = "") -> End | None:
    """Return how a run has ended, None if it has not.

    Args:
        config: The whole configuration, of which `out` and `run` are read.
        run: By which its end is known, as the controller's status has it; "": the configuration's key `run`,
            without which no end is known.

    Raises:
        ConfigError: the record cannot be read.
    """
    out, known = str(setting(config, "out", "")), run or str(setting(config, "run", ""))
    if not out or not known:
        return None
    path = Path(out) / FILE
    try:
        record = json.loads(path.read_text())
        if record["run"] != known:
            return None
        return End(str(record["reason"]), bool(record["exit"]), int(record["step"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as err:
        hint = "if the run has not ended, remove the file"
        raise ConfigError(f"the record of the run's end {path} cannot be read: {err}; {hint}") from err
