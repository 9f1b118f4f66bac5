"""Jobs of fray on a Ray cluster beside Ray's own tasks, in one run: `python ray_jobs.py [jobs]`.

Both start processes of their own: a native task has max_calls=1, so that its worker serves it alone. Reported
are the time from the submission of a callable to its start, and that of many that do nothing.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cloudpickle
import ray

from fray.cluster import Entrypoint, JobRequest
from fray.cluster.ray import RayCluster

STARTS = 15
CPUS = 2


def note(path: str) -> None:
    Path(path).write_text(str(time.time()))


def nothing() -> None:
    pass


def starts(submit: Callable[[str], None], directory: Path) -> list[float]:
    """Return the seconds from each submission to the start of what was submitted."""
    found = []
    for i in range(STARTS):
        path = directory / f"{os.urandom(4).hex()}-{i}"
        began = time.time()
        submit(str(path))
        found.append(float(path.read_text()) - began)
    return sorted(found)


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    ray.init(num_cpus=CPUS, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    address = ray.get_runtime_context().gcs_address
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

        for name, submit in (("warm", ours), ("warm", native), ("native", native), ("fray", ours)):
            found = starts(submit, directory)
            if name != "warm":
                median, worst = statistics.median(found), found[-1]
                print(
                    f"{name:8} submit to start: p50 {median * 1e3:7.1f} ms, most {worst * 1e3:7.1f} ms",
                    flush=True,
                )
        began = time.monotonic()
        ray.get([task.remote() for _ in range(many)])
        native_took = time.monotonic() - began
        print(f"native   {many} tasks: {native_took:.1f} s", flush=True)
        began = time.monotonic()
        jobs = [
            cluster.launch(JobRequest(f"nothing-{i}", Entrypoint.from_callable(nothing))) for i in range(many)
        ]
        launched = time.monotonic() - began
        cluster.wait(jobs, raise_on_failure=True)
        took = time.monotonic() - began
        print(
            f"fray     {many} jobs: {took:.1f} s ({launched:.1f} s to launch), {took / native_took:.2f} times native"
        )
    ray.shutdown()


if __name__ == "__main__":
    main()
