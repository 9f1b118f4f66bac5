"""What a job writes, as it writes it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from fray.cluster.iris.logs import RECORD, Line, Logs

_FIRST, _LONGEST = 0.1, 1.0  # seconds between two reads
_SETTLED = 1.5  # seconds without a line after the end, as workers send lines in batches


class Monitor:
    """Prints the output of a job, each line once."""

    def __init__(self, logs: Logs, ended: Callable[[], bool], tasks: Callable[[], int]) -> None:
        """Make a monitor.

        Args:
            logs: Of the job.
            ended: Reports whether the job has ended.
            tasks: Returns how many tasks it has: of several, each line names its task.
        """
        self._logs, self._ended, self._tasks = logs, ended, tasks
        self._cursor = 0
        self._prefixed: bool | None = None

    def run(self) -> None:
        """Print until the job has ended and its lines have come."""
        pause, quiet_since = _FIRST, time.monotonic()
        while True:
            over = self._ended()
            if self._print():
                pause, quiet_since = _FIRST, time.monotonic()
                continue
            if over and time.monotonic() - quiet_since >= _SETTLED:
                return
            time.sleep(pause)
            pause = min(_LONGEST, 1.5 * pause)

    def _print(self) -> bool:
        """Print the next lines, and return whether there were any."""
        lines, cursor = self._logs.after(self._cursor)
        moved, self._cursor = cursor > self._cursor, cursor
        for line in lines:
            if not line.text.startswith(RECORD):
                sys.stdout.write(self._text(line))
        if lines:
            sys.stdout.flush()
        return moved

    def _text(self, line: Line) -> str:
        if self._prefixed is None:
            self._prefixed = self._tasks() > 1
        return f"{line.task} | {line.text}\n" if self._prefixed else f"{line.text}\n"
