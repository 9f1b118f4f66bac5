"""Jobs of fray on a Ray cluster beside Ray's own tasks, in one run: `python ray_jobs.py [jobs]`.

Both start processes of their own: a native task has max_calls=1, so that its worker serves it alone. Reported
are the time from the submission of a callable to its start, and that of many that do nothing.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cloudpickle
import ray
from one_node import start as start_cluster
from rows import quartiles, tell

from fray.cluster import Entrypoint, JobRequest
from fray.cluster.ray import RayCluster

STARTS = int(os.environ.get("FRAY_BENCH_STARTS", "15"))
TURNS = 4
CPUS = 2


def note(path: str) -> None:
    Path(path).write_text(str(time.time()))


def nothing() -> None:
    pass


def start(submit: Callable[[str], None], directory: Path) -> float:
    """Return the seconds from a submission to the start of what was submitted."""
    path = directory / os.urandom(8).hex()
    began = time.time()
    submit(str(path))
    return float(path.read_text()) - began


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    address = start_cluster(CPUS)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        directory = Path(scratch)
        cluster = RayCluster(address, namespace="bench")
        fresh = ray.remote(max_calls=1)(note)
        task = ray.remote(max_calls=1)(nothing)

        def native(path: str) -> None:
            ray.get(fresh.remote(path))

        def ours(path: str) -> None:
            job = cluster.launch(JobRequest("start", Entrypoint.from_callable(note, [path])))
            cluster.wait(job, raise_on_failure=True)

        taken: dict[str, list[float]] = {"ray": [], "fray": []}
        for _ in range(STARTS + 1):  # by turns, so that what else the machine does hits both
            taken["ray"].append(start(native, directory))
            taken["fray"].append(start(ours, directory))
        for name, seconds in taken.items():
            quartiles("submit to start p50", name, seconds[1:])
            tell(f"submit to start longest, {name}", max(seconds[1:]))
        totals = {"ray": 0.0, "fray": 0.0}
        for turn in range(TURNS):
            began = time.monotonic()
            ray.get([task.remote() for _ in range(many // TURNS)])
            totals["ray"] += time.monotonic() - began
            began = time.monotonic()
            requests = (
                JobRequest(f"nothing-{turn}-{i}", Entrypoint.from_callable(nothing))
                for i in range(many // TURNS)
            )
            cluster.wait([cluster.launch(request) for request in requests], raise_on_failure=True)
            totals["fray"] += time.monotonic() - began
            for name, seconds in totals.items():  # so far
                tell(f"jobs that do nothing, {name}", seconds)
    ray.shutdown()


if __name__ == "__main__":
    main()
