"""What jobs of a LocalCluster write, as other processes read it: each line once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

PROGRAM = """
import os, sys, time
from fray.cluster import Entrypoint, JobRequest, LocalCluster

def write(job, lines):
    for line in range(lines):
        print(f"job {job} line {line}")

def sleep():
    print("sleeps")
    time.sleep(1)
    print("slept")

cluster = LocalCluster(max_workers=8, use_processes=sys.argv[1] == "processes")
print("begins")
jobs = [
    cluster.launch(JobRequest(f"write-{n}", Entrypoint.from_callable(write, args=(n, 3000))))
    for n in range(4)
]
for job in jobs:
    cluster.monitor(job)
sleeper = cluster.launch(JobRequest("sleeps", Entrypoint.from_callable(sleep)))
time.sleep(0.3)
if not (child := os.fork()):
    sys.exit(0)  # which writes what the process holds back, and runs what is to run at its exit
os.waitpid(child, 0)
print("the sleeper", cluster.wait(sleeper).status)
"""


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_lines_come_once_and_a_fork_ends_no_job(kind: str) -> None:
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONUNBUFFERED", "FRAY_CLUSTER_SPEC")}
    environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind],
        env=environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = Counter(line for line in done.stdout.splitlines() if line)
    assert {line: n for line, n in counts.items() if n > 1} == {}
    said = [f"job {job} line {line}" for job in range(4) for line in range(3000)]
    assert sum(line in done.stdout for line in ["begins", "sleeps", "slept", "the sleeper succeeded"]) == 4
    if kind == "processes":  # the ends of lines that threads print at a time may swap
        assert counts.keys() >= set(said)
