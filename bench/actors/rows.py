"""The rows of Ray's own microbenchmark of actors, for any library: each is a rate of calls a second."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence

SERVERS = 4
BATCH = 1000
WARM = 0.5  # seconds
ROUND = 1.5  # seconds
ROUNDS = 3


def rate(row: str, run: Callable[[], None], calls: int) -> None:
    """Print how many calls a second a function makes that makes so many: the median of some rounds."""
    end = time.perf_counter() + WARM
    while time.perf_counter() < end:
        run()
    rates = []
    for _ in range(ROUNDS):
        began, done = time.perf_counter(), 0
        while time.perf_counter() < began + ROUND:
            run()
            done += calls
        rates.append(done / (time.perf_counter() - began))
    tell(row, statistics.median(rates))


def latency(row: str, run: Callable[[], None], count: int = 2000) -> None:
    """Print the median and the 99th percentile, in seconds, of a function's calls."""
    for _ in range(count // 10):
        run()
    times = []
    for _ in range(count):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    times.sort()
    tell(row + " p50", times[len(times) // 2])
    tell(row + " p99", times[len(times) * 99 // 100])


def quartiles(row: str, library: str, values: Sequence[float]) -> None:
    """Print the median of what was measured of a library, and the quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    tell(f"{row}, {library}", middle)
    tell(f"{row} first quartile, {library}", low)
    tell(f"{row} third quartile, {library}", high)


def tell(row: str, value: float) -> None:
    """Print a number, for the program that started this one."""
    json.dump({"row": row, "value": value}, sys.stdout)
    sys.stdout.write("\n")
    sys.stdout.flush()
