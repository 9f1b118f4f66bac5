"""What tasks on Iris write, from its log server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fray.cluster.iris.answer import number
from fray.cluster.iris.connection import Connection
from fray.cluster.types import Termination, TerminationCause

RECORD = "fray-termination: "
"""What begins the line with what a program recorded about its failure, see `task`."""
TAIL = 20
"""Lines of a task that failed."""


@dataclass(frozen=True)
class Line:
    """One line of one attempt at a task."""

    task: int
    attempt: int
    """From 0, as Iris counts."""
    text: str


class Logs:
    """Reads lines of one job."""

    def __init__(self, connection: Connection, job_id: str, since: int = 0) -> None:
        """Read the lines of a job; `since` is when it was submitted, in milliseconds of Unix time.

        A job that had its name before has left its lines under the same keys.
        """
        self._connection, self._job_id, self._since = connection, job_id, since

    def after(self, cursor: int) -> tuple[list[Line], int]:
        """Return the next lines of all tasks after a cursor, 0 for the first, and the cursor after them."""
        body = {"source": f"{self._job_id}/", "matchScope": "MATCH_SCOPE_PREFIX"}
        body |= {"cursor": str(cursor), "sinceMs": str(self._since)}
        answer = self._connection.call_logs("FetchLogs", body)
        lines = [line for entry in answer.get("entries", ()) if (line := self._line(entry)) is not None]
        return lines, max(cursor, number(answer.get("cursor")))

    def last(self, task: int, attempt: int, count: int = TAIL) -> tuple[str, ...]:
        """Return the last lines of an attempt at a task."""
        found = self._fetch(task, attempt, {"tail": True, "maxLines": count + 1})
        return tuple(line for line in found if not line.startswith(RECORD))[-count:]

    def termination(self, task: int, attempt: int) -> Termination | None:
        """Return what the program of an attempt at a task recorded about its failure, None for nothing."""
        return termination_of(self._fetch(task, attempt, {"substring": RECORD, "tail": True, "maxLines": 1}))

    def _fetch(self, task: int, attempt: int, more: Mapping[str, Any]) -> list[str]:
        body = {"source": f"{self._job_id}/{task}:{attempt}", "matchScope": "MATCH_SCOPE_EXACT"}
        body |= {"sinceMs": str(self._since), **more}
        answer = self._connection.call_logs("FetchLogs", body)
        return [str(entry.get("data", "")) for entry in answer.get("entries", ())]

    def _line(self, entry: Mapping[str, Any]) -> Line | None:
        """Return a line, None if it is of a child of the job."""
        task_name, _, attempt = str(entry.get("key", "")).rpartition(":")
        job_id, _, index = task_name.rpartition("/")
        if job_id != self._job_id or not index.isdecimal():
            return None
        return Line(int(index), number(attempt), str(entry.get("data", "")))


def termination_of(lines: Sequence[str]) -> Termination | None:
    """Return the last record among lines, None if there is none that this version knows."""
    for line in reversed(lines):
        if not line.startswith(RECORD):
            continue
        try:
            content = json.loads(line.removeprefix(RECORD))
            cause = TerminationCause(content["cause"])
            return Termination(cause, str(content["message"]), str(content["type"]), str(content["trace"]))
        except (ValueError, KeyError, TypeError):
            return None
    return None
