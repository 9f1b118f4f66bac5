"""Errors of a run: what one is, and the list of the last ones that the health of a run is read from."""

from __future__ import annotations

import threading
import time
import traceback
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

RECENT = 300.0
"""Seconds for which an error counts for the health of a run."""


class ErrorSeverity(Enum):
    """How grave an error is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass
class ErrorInfo:
    """An error that was reported."""

    error_id: str
    timestamp: float
    """Seconds since the epoch."""
    module_name: str
    work_context: str
    severity: ErrorSeverity
    message: str
    details: dict[str, Any] = field(default_factory=dict)
    exception_type: str | None = None
    exception_traceback: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as a dictionary that actors carry."""
        return {**asdict(self), "severity": self.severity.value}


class ErrorReporter:
    """Keeps the last errors of a run."""

    def __init__(self, max_errors: int = 1000, clock: Callable[[], float] = time.time) -> None:
        """Make an empty list.

        Args:
            max_errors: How many to keep; the oldest are dropped.
            clock: Gives seconds since the epoch.

        Raises:
            ValueError: `max_errors` is less than 1.
        """
        if max_errors < 1:
            raise ValueError(f"max_errors is {max_errors}; it must be at least 1")
        self._errors: deque[ErrorInfo] = deque(maxlen=max_errors)
        self._clock, self._lock = clock, threading.Lock()

    def report_exception(
        self,
        module_name: str,
        work_context: str,
        exception: BaseException,
        severity: ErrorSeverity = ErrorSeverity.ERROR,
        details: dict[str, Any] | None = None,
    ) -> str:
        """Keep an exception with its traceback, and return the id of the error."""
        described = describe(exception)
        return self._keep(
            module_name,
            work_context,
            described["message"],
            severity,
            details,
            described["type"],
            described["traceback"],
        )

    def report_error(
        self,
        module_name: str,
        work_context: str,
        message: str,
        severity: ErrorSeverity = ErrorSeverity.ERROR,
        details: dict[str, Any] | None = None,
    ) -> str:
        """Keep an error that is no exception, and return its id."""
        return self._keep(module_name, work_context, message, severity, details)

    def _keep(
        self,
        module: str,
        work: str,
        message: str,
        severity: ErrorSeverity,
        details: dict[str, Any] | None,
        kind: str | None = None,
        text: str | None = None,
    ) -> str:
        now, known = self._clock(), uuid.uuid4().hex
        error = ErrorInfo(known, now, module, work, severity, message, dict(details or {}), kind, text)
        with self._lock:
            self._errors.append(error)
        return known

    def get_errors(self) -> list[ErrorInfo]:
        """Return the errors that are kept, the oldest first."""
        with self._lock:
            return list(self._errors)

    def get_health_status(self) -> dict[str, Any]:
        """Return what the errors of the last five minutes amount to.

        `status` is "error" if one of them is an error, else "warning" if one is a warning, else "healthy".
        `message` is a summary, `recent_error_count` the number of all of them, and `error_level_count` and
        `warning_level_count` those of a severity.
        """
        since = self._clock() - RECENT
        recent = [error for error in self.get_errors() if error.timestamp >= since]
        grave = [error for error in recent if error.severity is ErrorSeverity.ERROR]
        warned = [error for error in recent if error.severity is ErrorSeverity.WARNING]
        status = "error" if grave else "warning" if warned else "healthy"
        message = "no recent errors"
        if latest := (grave or warned or recent)[-1:]:
            counted = f"{len(grave)} errors and {len(warned)} warnings in the last 5 minutes"
            message = f"{counted}; the last: {latest[0].module_name}: {latest[0].message}"
        return {
            "status": status,
            "message": message,
            "recent_error_count": len(recent),
            "error_level_count": len(grave),
            "warning_level_count": len(warned),
        }


def describe(exception: BaseException) -> dict[str, str]:
    """Return type, message and traceback of an exception, also of where it was raised in another process."""
    kind = type(exception)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return {
        "type": name,
        "message": str(exception),
        "traceback": "".join(traceback.format_exception(exception)),
    }
