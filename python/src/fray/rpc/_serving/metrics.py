"""Counts of calls, errors and durations of each method, and their text for /metrics.

When a call counts is left to `_serving.actor` and `_serving.core`.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final

from fray.rpc.errors import Code

# Seconds: calls take from microseconds to hours.
_BOUNDS: Final = (
    1e-05,
    3e-05,
    0.0001,
    0.0003,
    0.001,
    0.003,
    0.01,
    0.03,
    0.1,
    0.3,
    1.0,
    3.0,
    10.0,
    60.0,
    600.0,
)

_NO_CODE: Final = 0


class MethodStats:
    """Of one method of an actor."""

    __slots__ = ("_lock", "buckets", "calls", "errors", "seconds")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.calls = 0
        self.seconds = 0.0
        self.errors: dict[int, int] = {}  # by code
        self.buckets = [0] * (len(_BOUNDS) + 1)

    def add(self, seconds: float, code: int) -> None:
        """Count a call that was answered; `code` is 0 without an error."""
        bucket = bisect_left(_BOUNDS, seconds)
        with self._lock:
            self.calls += 1
            self.seconds += seconds
            self.buckets[bucket] += 1
            if code != _NO_CODE:
                self.errors[code] = self.errors.get(code, 0) + 1

    @property
    def failed(self) -> int:
        """Calls that were answered with an error."""
        return sum(self.errors.copy().values())


class Exposition:
    """A text that Prometheus reads."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def family(self, name: str, kind: str, text: str) -> None:
        """Begin the samples of a metric."""
        self._lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]

    def sample(self, name: str, value: float, **labels: str) -> None:
        """Add a sample."""
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        self._lines.append(f"{name}{{{inside}}} {value}" if inside else f"{name} {value}")

    def methods(self, stats: Iterable[tuple[str, str, MethodStats]], unrouted: Mapping[int, int]) -> None:
        """Add what was counted of actors' methods, and the errors of calls that reached none, by code."""
        found = list(stats)
        self.family("fray_actor_calls_total", "counter", "Calls that were answered.")
        for actor, method, one in found:
            self.sample("fray_actor_calls_total", one.calls, actor=actor, method=method)
        self.family(
            "fray_actor_errors_total",
            "counter",
            "Calls that were answered with an error, by its code. Those to no actor or method have no name.",
        )
        for actor, method, one in found:
            for code, count in sorted(one.errors.copy().items()):
                self.sample(
                    "fray_actor_errors_total", count, actor=actor, method=method, code=_code_name(code)
                )
        for code, count in sorted(unrouted.items()):
            self.sample("fray_actor_errors_total", count, actor="", method="", code=_code_name(code))
        name = "fray_actor_call_duration_seconds"
        self.family(name, "histogram", "From a call's arrival to its answer.")
        for actor, method, one in found:
            total = 0
            for bound, count in zip((*_BOUNDS, "+Inf"), one.buckets, strict=True):
                total += count
                self.sample(f"{name}_bucket", total, actor=actor, method=method, le=str(bound))
            self.sample(f"{name}_sum", one.seconds, actor=actor, method=method)
            self.sample(f"{name}_count", total, actor=actor, method=method)

    def text(self) -> str:
        """Return it whole."""
        return "\n".join(self._lines) + "\n"


def _code_name(number: int) -> str:
    return next((code.value for code in Code if code.number == number), "")


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
