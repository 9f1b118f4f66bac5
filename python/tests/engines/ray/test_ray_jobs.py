"""Checks 6 to 21: jobs of one task."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from engines.ray import engine_programs as programs
from engines.ray.helpers import WAIT, Gate, call, command, gone, held, until
from fray.cluster import (
    AlreadyExistsError,
    Entrypoint,
    EnvironmentConfig,
    JobFailedError,
    JobStatus,
    NameClash,
    ResourceConfig,
    TaskState,
    TerminationCause,
    WaitTimeoutError,
)
from fray.v2 import JobRequest as Request
from fray.v2.client import _ClusterClient


@pytest.mark.short
def test_ray_06_success_and_output(cluster: Any, capfd: pytest.CaptureFixture[str]) -> None:
    job = cluster.launch(call("say", programs.say, "hello"))
    assert cluster.monitor(job).status is JobStatus.SUCCEEDED
    assert sorted(capfd.readouterr().out.splitlines()) == ["err hello", "hello"]


@pytest.mark.short
def test_ray_07_exit_code(cluster: Any, tmp_path: Path) -> None:
    counted = tmp_path / "count"
    job = cluster.launch(call("seven", programs.count_and_fail, str(counted), 7, max_retries_failure=2))
    info = cluster.wait(job, timeout=WAIT)
    assert info.status is JobStatus.FAILED
    assert info.reason == "exit status 7"
    assert [task.exit_code for task in info.tasks] == [7]
    assert (info.failures, info.preemptions, len(counted.read_text().split())) == (3, 0, 3)


def test_ray_08_exception(cluster: Any) -> None:
    job = cluster.launch(call("key", programs.fail_with_key))
    with pytest.raises(JobFailedError) as err:
        cluster.wait(job, raise_on_failure=True, timeout=WAIT)
    assert "KeyError: 'boom'" in str(err.value)
    assert "in fail_with_key" in str(err.value)


@pytest.mark.parametrize("how", ["os", "sys"])
def test_ray_09_exit(cluster: Any, how: str) -> None:
    info = cluster.wait(cluster.launch(call("leave", programs.leave, 3, how)), timeout=WAIT)
    assert (info.status, info.failures, info.preemptions) == (JobStatus.FAILED, 1, 0)
    assert info.tasks[0].exit_code == 3


def test_ray_10_killed_by_hand(cluster: Any, tmp_path: Path) -> None:
    job, pid, _ = held(cluster, tmp_path)
    os.kill(pid, signal.SIGKILL)
    info = cluster.wait(job, timeout=WAIT)
    assert (info.status, info.failures, info.preemptions) == (JobStatus.FAILED, 1, 0)
    assert info.tasks[0].exit_code == 137
    assert "SIGKILL" in info.reason


DRIVER = """
import sys
from fray.cluster import *
from fray.cluster.ray import RayCluster
cluster = RayCluster(sys.argv[1], namespace=sys.argv[2])
sys.stdin.readline()
try:
    job = cluster.launch(JobRequest("same", Entrypoint.from_command(["sh", "-c", sys.argv[3]])))
except AlreadyExistsError:
    job = ""
print(job, flush=True)
"""


def test_ray_11_same_name_from_eight_drivers(nodes: Any, cluster: Any, tmp_path: Path) -> None:
    counted, gate = tmp_path / "count", Gate(tmp_path / "gate")
    program = f"echo x >> {counted}; while [ ! -e {gate.path} ]; do sleep 0.05; done"
    with contextlib.ExitStack() as started:
        drivers = [
            started.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", DRIVER, nodes.address, cluster.namespace, program],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(8)
        ]
        for driver in drivers:
            assert driver.stdin is not None
            driver.stdin.write("\n")
            driver.stdin.flush()
        answers = [str(driver.stdout.readline()).strip() for driver in drivers if driver.stdout]
    found = [answer for answer in answers if answer]
    assert len(found) == 1
    with pytest.raises(AlreadyExistsError, match='job "same" lives'):
        cluster.launch(command("same", "true"))
    assert cluster.launch(command("same", "true", name_clash=NameClash.KEEP)) == found[0]
    gate.open()
    assert cluster.wait(found[0], timeout=WAIT).status is JobStatus.SUCCEEDED
    assert counted.read_text() == "x\n"
    assert cluster.launch(command("same", "true")) != found[0]


def test_ray_11_recreate(cluster: Any, tmp_path: Path) -> None:
    first, pid, _ = held(cluster, tmp_path)
    second = cluster.launch(command("held", "true", name_clash=NameClash.RECREATE))
    assert gone(pid)
    assert cluster.wait([first, second], timeout=WAIT)[0].status is JobStatus.STOPPED


@pytest.mark.parametrize("name", ["a/b", "deep/er/name.v1", "under_score-dash"])
def test_ray_12_names(cluster: Any, name: str) -> None:
    info = cluster.wait(cluster.launch(command(name, "true")), timeout=WAIT)
    assert (info.status, info.name) == (JobStatus.SUCCEEDED, name)


@pytest.mark.parametrize("name", ["with space", "umläut", ""])
def test_ray_12_names_that_no_backend_takes(cluster: Any, name: str) -> None:
    with pytest.raises(ValueError, match="is no name"):
        cluster.launch(command(name, "true"))


def test_ray_13_driver_ends(
    nodes: Any, cluster: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    gate = Gate(tmp_path / "gate")
    program = f"echo before; while [ ! -e {gate.path} ]; do sleep 0.05; done; echo after"
    driver = subprocess.run(
        [sys.executable, "-c", DRIVER, nodes.address, cluster.namespace, program],
        input="\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT,
    )
    found = [job for job in cluster.list_jobs() if job.name == "same"]
    assert [job.job_id for job in found] == [driver.stdout.strip()]
    until(lambda: cluster.poll(found[0].job_id).status is JobStatus.RUNNING)
    gate.open()
    assert cluster.monitor(found[0].job_id).status is JobStatus.SUCCEEDED
    assert capfd.readouterr().out == "before\nafter\n"


@pytest.mark.short
def test_ray_14_terminate_running(cluster: Any, tmp_path: Path) -> None:
    """SIGTERM, grace, SIGKILL; and what left the session of the program ends as well."""
    pids, termed = tmp_path / "pids", tmp_path / "termed"
    program = (
        f"trap 'touch {termed}' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >> {pids}; "
        f"while :; do sleep 0.1; done' & echo $$ >> {pids}; while :; do sleep 0.1; done"
    )
    job = cluster.launch(command("stubborn", "sh", "-c", program, stop_grace_seconds=0.5))
    found = until(lambda: pids.exists() and len(pids.read_text().split()) == 2 and pids.read_text().split())
    cluster.terminate(job)
    info = cluster.wait(job, timeout=WAIT)
    assert info.status is JobStatus.STOPPED
    assert info.reason == "stopped by a client"
    assert termed.exists()
    assert all(gone(int(pid)) for pid in found)


def test_ray_14_graceful(cluster: Any, tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = f"trap 'echo leaving; exit 0' TERM; touch {started}; while :; do sleep 0.05; done"
    job = cluster.launch(command("polite", "sh", "-c", program))
    until(started.exists)
    began = time.monotonic()
    cluster.terminate(job)
    assert cluster.wait(job, timeout=WAIT).status is JobStatus.STOPPED
    assert time.monotonic() - began < 9  # of a grace of 10


@pytest.mark.short
def test_ray_15_terminate_pending(cluster: Any, tmp_path: Path) -> None:
    """It never runs, even where capacity comes afterwards."""
    ran = tmp_path / "ran"
    both, _, gate = held(cluster, tmp_path, "both", resources=ResourceConfig(cpu=2))
    waits = cluster.launch(command("waits", "touch", str(ran)))
    assert cluster.poll(waits).status is JobStatus.PENDING
    cluster.terminate(waits)
    assert cluster.wait(waits, timeout=WAIT).status is JobStatus.STOPPED
    gate.open()
    cluster.wait(both, timeout=WAIT)
    after = cluster.launch(command("after", "true", resources=ResourceConfig(cpu=2)))
    assert cluster.wait(after, timeout=WAIT).status is JobStatus.SUCCEEDED
    assert not ran.exists()


def test_ray_16_terminate_twice(cluster: Any, tmp_path: Path) -> None:
    job, pid, _ = held(cluster, tmp_path)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(cluster.terminate, [job] * 4))
    info = cluster.wait(job, timeout=WAIT)
    cluster.terminate(job)
    assert cluster.poll(job) == info
    assert gone(pid)


def test_ray_17_two_run_and_a_third_waits(cluster: Any, tmp_path: Path) -> None:
    first, _, one = held(cluster, tmp_path, "one")
    second, _, two = held(cluster, tmp_path, "two")
    third = cluster.launch(command("three", "true"))
    info = cluster.poll(third)
    assert info.status is JobStatus.PENDING
    until(lambda: any("has 0 CPU" in reason for reason in cluster.poll(third).pending_reasons))
    one.open()
    assert cluster.wait(third, timeout=WAIT).status is JobStatus.SUCCEEDED
    two.open()
    assert {i.status for i in cluster.wait([first, second], timeout=WAIT)} == {JobStatus.SUCCEEDED}


def test_ray_17_memory(cluster: Any) -> None:
    job = cluster.launch(command("huge", "true", resources=ResourceConfig(cpu=1, ram="4t")))
    until(lambda: "no node has 4194304 MiB of memory" in "".join(cluster.poll(job).pending_reasons))


def test_ray_18_infeasible(cluster: Any) -> None:
    job = cluster.launch(command("large", "true", resources=ResourceConfig(cpu=64)))
    info = cluster.poll(job)
    assert info.status is JobStatus.PENDING
    assert info.pending_reasons == ("no node has 64 CPU; the largest has 2 CPU",)


def test_ray_18_not_preemptible(nodes: Any, cluster: Any) -> None:
    job = cluster.launch(command("pinned", "true", resources=ResourceConfig(preemptible=False)))
    until(lambda: "no node has the resource head_node" in "".join(cluster.poll(job).pending_reasons))
    node = nodes.add(num_cpus=1, resources={"head_node": 1})
    assert cluster.wait(job, timeout=WAIT).status is JobStatus.SUCCEEDED
    nodes.remove(node, graceful=True)


def test_ray_19_wait(cluster: Any, tmp_path: Path) -> None:
    job, _, gate = held(cluster, tmp_path)
    with pytest.raises(WaitTimeoutError, match=r"had not ended after 0\.1 s"):
        cluster.wait(job, timeout=0.1)
    assert cluster.poll(job).status is JobStatus.RUNNING
    gate.open()
    assert cluster.wait(job, timeout=WAIT).status is JobStatus.SUCCEEDED
    failed = _ClusterClient(cluster).submit(Request("bad", Entrypoint.from_command(["false"])))
    assert failed.wait(WAIT, raise_on_failure=False) == "failed"


def test_ray_20_wait_for_all(cluster: Any, tmp_path: Path) -> None:
    slow, _, gate = held(cluster, tmp_path)
    quick = cluster.launch(command("quick", "true"))
    cluster.wait(quick, timeout=WAIT)
    bad = cluster.launch(command("bad", "false"))
    with pytest.raises(JobFailedError, match=f"job bad \\({bad}\\) failed"):
        cluster.wait([slow, quick, bad], raise_on_failure=True, timeout=WAIT)
    assert cluster.poll(slow).status is JobStatus.RUNNING
    gate.open()
    infos = cluster.wait([bad, slow, quick], timeout=WAIT)
    assert [info.name for info in infos] == ["bad", "held", "quick"]


def test_ray_21_logs(cluster: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Across attempts, while it runs, and after its end."""
    gate = Gate(tmp_path / "gate")
    program = f'echo "attempt $FRAY_ATTEMPT"; while [ ! -e {gate.path} ]; do sleep 0.02; done; exit 1'
    job = cluster.launch(command("twice", "sh", "-c", program, max_retries_failure=1))
    seen = []

    def follow() -> None:
        seen.append(cluster.monitor(job))

    follower = threading.Thread(target=follow)
    follower.start()
    printed = ""

    def first() -> bool:
        nonlocal printed
        printed += capfd.readouterr().out
        return "attempt 1\n" in printed

    until(first)
    assert cluster.poll(job).status is JobStatus.RUNNING
    gate.open()
    follower.join(WAIT)
    assert seen[0].failures == 2
    assert printed + capfd.readouterr().out == "attempt 1\nattempt 2\n"
    assert cluster.monitor(job).status is JobStatus.FAILED
    assert capfd.readouterr().out == "attempt 1\nattempt 2\n"


def test_ray_program_missing(cluster: Any) -> None:
    info = cluster.wait(
        cluster.launch(command("none", "no-such-program", max_retries_failure=5)), timeout=WAIT
    )
    assert (info.status, info.failures) == (JobStatus.FAILED, 1)
    assert info.tasks[0].termination is not None
    assert info.tasks[0].termination.cause is TerminationCause.PROGRAM_MISSING


def test_ray_timeout_of_an_attempt(cluster: Any) -> None:
    info = cluster.wait(cluster.launch(command("slow", "sleep", "600", timeout_seconds=0.2)), timeout=WAIT)
    assert (info.status, info.reason) == (JobStatus.FAILED, "it ran longer than 0.2 s, which is its timeout")


def test_ray_timeout_of_scheduling(cluster: Any) -> None:
    request = command("never", "true", resources=ResourceConfig(cpu=64), scheduling_timeout_seconds=0.2)
    info = cluster.wait(cluster.launch(request), timeout=WAIT)
    assert info.status is JobStatus.FAILED
    assert "it could not start in 0.2 s: no node has 64 CPU" in info.reason


CHILD = """
import sys, time
from fray.cluster import *
cluster = current_cluster()
child = cluster.launch(JobRequest("child", Entrypoint.from_command(["sleep", "600"])))
apart = cluster.launch(JobRequest("apart", Entrypoint.from_command(["sleep", "600"]), detached=True))
print(child, apart, cluster.namespace, flush=True)
time.sleep(600)
"""


def test_ray_children_end_with_their_parent(cluster: Any) -> None:
    small = ResourceConfig(cpu=0.1)
    text = CHILD.replace('"600"]),', '"600"]), resources=ResourceConfig(cpu=0.1),').replace(
        '"600"])))', '"600"]), resources=ResourceConfig(cpu=0.1)))'
    )
    parent = cluster.launch(
        command(
            "parent",
            sys.executable,
            "-c",
            text,
            resources=small,
            environment=EnvironmentConfig.create(env_vars={"PYTHONPATH": os.environ.get("PYTHONPATH", "")}),
        )
    )
    until(lambda: len(cluster.list_jobs()) == 3)
    jobs = {job.name: job for job in cluster.list_jobs()}
    assert (jobs["child"].parent_job_id, jobs["apart"].parent_job_id) == (parent, parent)
    cluster.terminate(parent)
    assert cluster.wait(jobs["child"].job_id, timeout=WAIT).status is JobStatus.STOPPED
    assert not cluster.poll(jobs["apart"].job_id).status.ended


def test_ray_registry_is_killed(cluster: Any, tmp_path: Path) -> None:
    """The registry comes back with all that it knew, and jobs do not notice."""
    import ray

    job, pid, gate = held(cluster, tmp_path)
    ended = cluster.launch(command("ended", "echo", "kept"))
    before = cluster.wait(ended, timeout=WAIT)
    registry = ray.get_actor("fray-registry", namespace=cluster.namespace)
    ray.kill(registry, no_restart=False)
    assert cluster.poll(ended) == before
    assert not gone(pid)
    gate.open()
    info = cluster.wait(job, timeout=WAIT)
    assert (info.status, info.attempt, info.preemptions) == (JobStatus.SUCCEEDED, 1, 0)


def test_ray_supervisor_is_killed(cluster: Any, tmp_path: Path) -> None:
    """Its program ends with it, and the next attempt counts as a preemption."""
    counted = tmp_path / "count"
    job, pid, gate = held(cluster, tmp_path)
    del counted
    supervisor = int(Path(f"/proc/{_parent(_parent(pid))}/stat").read_text().split()[0])
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: gone(pid))
    until(lambda: cluster.poll(job).attempt == 2)
    gate.open()
    info = cluster.wait(job, timeout=WAIT)
    assert (info.status, info.attempt, info.failures, info.preemptions) == (JobStatus.SUCCEEDED, 2, 0, 1)
    assert info.attempts[0].outcome is TaskState.PREEMPTED


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
