"""Checks 25 to 31: several tasks, slices, lost nodes, and what is left."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engines.ray.helpers import WAIT, command, gone, held, until
from fray.cluster import JobRequest, JobStatus, ResourceConfig, TaskState

ONE = ResourceConfig(cpu=1)


@contextlib.contextmanager
def added(nodes: Any, count: int, **options: Any) -> Iterator[list[str]]:
    """Add nodes for a while; those that are still there are ended then."""
    ids = [nodes.add(**options) for _ in range(count)]
    left = list(ids)
    try:
        yield left
    finally:
        for node in left:
            nodes.remove(node)


def shell(tmp_path: Path, text: str) -> tuple[str, ...]:
    return "sh", "-c", text.replace("@", str(tmp_path))


SHOW = "env | sort > @/env-$FRAY_TASK_INDEX.part; mv @/env-$FRAY_TASK_INDEX.part @/env-$FRAY_TASK_INDEX"


def shown(tmp_path: Path, count: int) -> list[dict[str, str]]:
    """Return the variables that tasks have written."""
    texts = [(tmp_path / f"env-{i}").read_text() for i in range(count)]
    return [dict(line.partition("=")[::2] for line in text.splitlines()) for text in texts]


def test_ray_25_all_places_first(cluster: Any, tmp_path: Path) -> None:
    holds, _, gate = held(cluster, tmp_path, "holds")
    job = cluster.launch(command("gang", *shell(tmp_path, SHOW), num_tasks=2))
    until(lambda: any("2 times 1 CPU" in reason for reason in cluster.poll(job).pending_reasons))
    assert not list(tmp_path.glob("env-*"))
    gate.open()
    assert cluster.wait(job, timeout=WAIT).status is JobStatus.SUCCEEDED
    first, second = shown(tmp_path, 2)
    assert (first["FRAY_NUM_TASKS"], second["FRAY_TASK_INDEX"]) == ("2", "1")
    assert first["JAX_COORDINATOR_ADDRESS"] == second["JAX_COORDINATOR_ADDRESS"]
    assert first["JAX_COORDINATOR_ADDRESS"].startswith(first["FRAY_HOST_ADDRESS"] + ":")
    assert [first["JAX_PROCESS_ID"], second["JAX_PROCESS_ID"]] == ["0", "1"]
    cluster.wait(holds, timeout=WAIT)


def test_ray_26_one_fails(cluster: Any, tmp_path: Path) -> None:
    """All end, all start again together, and it counts once."""
    text = (
        "echo x >> @/ran-$FRAY_TASK_INDEX; "
        'if [ "$FRAY_ATTEMPT" = 2 ]; then exit 0; fi; '
        'if [ "$FRAY_TASK_INDEX" = 1 ]; then until [ -e @/ran-0 ]; do sleep 0.05; done; exit 5; fi; '
        "exec sleep 600"
    )
    job = cluster.launch(command("gang", *shell(tmp_path, text), num_tasks=2, max_retries_failure=1))
    info = cluster.wait(job, timeout=WAIT)
    assert (info.status, info.failures, info.preemptions, info.attempt) == (JobStatus.SUCCEEDED, 1, 0, 2)
    assert info.attempts[0].reason == "task 1: exit status 5"
    assert [(tmp_path / f"ran-{i}").read_text() for i in (0, 1)] == ["x\nx\n"] * 2


def test_ray_27_node_is_killed(nodes: Any, cluster: Any, tmp_path: Path) -> None:
    """A preemption, not a failure: the gang starts again on other nodes within 30 s."""
    text = (
        "echo $$ > @/pid-$FRAY_ATTEMPT-$FRAY_TASK_INDEX; "
        'if [ "$FRAY_ATTEMPT" = 2 ]; then exit 0; fi; exec sleep 600'
    )
    wide = ResourceConfig(cpu=3)
    with added(nodes, 3, num_cpus=3) as there:
        job = cluster.launch(
            command("gang", *shell(tmp_path, text), num_tasks=2, resources=wide, stop_grace_seconds=1)
        )
        until(lambda: sum(bool(path.read_text()) for path in tmp_path.glob("pid-1-*")) == 2)
        pids = [int((tmp_path / f"pid-1-{i}").read_text()) for i in (0, 1)]
        used = {place.node for place in cluster._calls.call("places", job)}
        lost = next(node for node in there if node in used)
        there.remove(lost)
        nodes.remove(lost)
        began = time.monotonic()
        info = cluster.wait(job, timeout=WAIT)
        assert time.monotonic() - began < 30
        assert (info.status, info.failures, info.preemptions, info.attempt) == (JobStatus.SUCCEEDED, 0, 1, 2)
        assert info.attempts[0].outcome is TaskState.PREEMPTED
        assert "Ray" in info.attempts[0].reason
        assert all(gone(pid) for pid in pids)


def test_ray_27_node_of_a_single_task(nodes: Any, cluster: Any, tmp_path: Path) -> None:
    wide = ResourceConfig(cpu=3)
    with added(nodes, 1, num_cpus=3) as there:
        job, pid, gate = held(cluster, tmp_path, resources=wide)
        nodes.remove(there.pop())
        until(lambda: cluster.poll(job).preemptions == 1)
        assert cluster.poll(job).status is JobStatus.PENDING
        assert "Ray's node" in cluster.poll(job).reason
        until(lambda: gone(pid))
        there.append(nodes.add(num_cpus=3))
        gate.open()
        info = cluster.wait(job, timeout=WAIT)
        assert (info.status, info.failures, info.preemptions, info.attempt) == (JobStatus.SUCCEEDED, 0, 1, 2)


def test_ray_27_budget_of_preemptions(nodes: Any, cluster: Any, tmp_path: Path) -> None:
    with added(nodes, 1, num_cpus=3) as there:
        job, _, _ = held(cluster, tmp_path, resources=ResourceConfig(cpu=3), max_retries_preemption=0)
        nodes.remove(there.pop())
        info = cluster.wait(job, timeout=WAIT)
        assert (info.status, info.failures, info.preemptions) == (JobStatus.FAILED, 0, 1)
        assert info.reason.startswith("it was preempted once, the last time because Ray's node")


def test_ray_28_dead_node_that_lives(nodes: Any, cluster: Any, tmp_path: Path) -> None:
    """What an attempt reports that was declared lost is void, and its program ends."""
    from fray.cluster.ray.records import TaskEnd

    with added(nodes, 1, num_cpus=3) as there:
        job, pid, gate = held(cluster, tmp_path, resources=ResourceConfig(cpu=3))
        raylet = nodes.raylet(there[0])
        os.kill(raylet, signal.SIGSTOP)
        try:
            until(lambda: cluster.poll(job).preemptions == 1)
            end = TaskEnd(0, TaskState.SUCCEEDED, exit_code=0)
            assert cluster._calls.call("finish", job, 1, [end]) is None
            assert not cluster._calls.call("write_log", job, 1, 0, 0, b"late")
            assert not cluster.poll(job).status.ended
        finally:
            os.kill(raylet, signal.SIGCONT)
        until(lambda: gone(pid))
        there.pop()
        there.append(nodes.add(num_cpus=3))
        gate.open()
        info = cluster.wait(job, timeout=WAIT)
        assert (info.status, info.failures, info.attempt) == (JobStatus.SUCCEEDED, 0, 2)


def slice_of(name: str, kind: str, host: int, head: bool) -> dict[str, Any]:
    resources = {"TPU": 4, name: 1} | ({f"TPU-{kind}-head": 1} if head else {})
    labels = {"ray.io/tpu-slice-name": name, "ray.io/tpu-worker-id": str(host), "ray.io/tpu-pod-type": kind}
    return {"num_cpus": 1, "resources": resources, "labels": labels}


def test_ray_29_one_host(nodes: Any, cluster: Any, tmp_path: Path) -> None:
    import ray

    with added(nodes, 1, **slice_of("slice-a", "v4-8", 0, head=True)):
        first, _, gate = held(cluster, tmp_path, resources=ResourceConfig.with_tpu("v4-8"))
        left = until(lambda: ray.available_resources() if "TPU" not in ray.available_resources() else None)
        assert "TPU-v4-8-head" not in left
        second = cluster.launch(
            command("second", *shell(tmp_path, SHOW), resources=ResourceConfig.with_tpu("v4-8"))
        )
        until(lambda: "others use them" in cluster.poll(second).reason)
        gate.open()
        assert cluster.wait(second, timeout=WAIT).status is JobStatus.SUCCEEDED
        cluster.wait(first, timeout=WAIT)
        (seen,) = shown(tmp_path, 1)
        assert (seen["TPU_NAME"], seen["TPU_WORKER_ID"], seen["JAX_NUM_PROCESSES"]) == ("slice-a", "0", "1")
        assert "MEGASCALE_NUM_SLICES" not in seen


def test_ray_30_slices_of_two_hosts(nodes: Any, cluster: Any, tmp_path: Path) -> None:
    with contextlib.ExitStack() as all_nodes:
        for name in ("slice-a", "slice-b"):
            for host in (1, 0):  # the second host first, so that order comes of the labels alone
                all_nodes.enter_context(added(nodes, 1, **slice_of(name, "v4-16", host, head=host == 0)))
        two = ResourceConfig.with_tpu("v4-16", slice_count=2)
        job = cluster.launch(command("slices", *shell(tmp_path, SHOW), resources=two))
        info = cluster.wait(job, timeout=WAIT)
        assert info.status is JobStatus.SUCCEEDED
        seen = shown(tmp_path, 4)
        assert [e["TPU_WORKER_ID"] for e in seen] == ["0", "1", "0", "1"]
        assert {e["TPU_NAME"] for e in seen[:2]} | {e["TPU_NAME"] for e in seen[2:]} == {"slice-a", "slice-b"}
        assert seen[0]["TPU_NAME"] == seen[1]["TPU_NAME"] != seen[2]["TPU_NAME"]
        assert [e["MEGASCALE_SLICE_ID"] for e in seen] == ["0", "0", "1", "1"]
        assert len({e["MEGASCALE_COORDINATOR_ADDRESS"] for e in seen}) == 1
        assert [e["JAX_PROCESS_ID"] for e in seen] == ["0", "1", "2", "3"]
        assert [task.host for task in info.tasks] == [0, 1, 0, 1]


def test_ray_30_no_such_slice(cluster: Any) -> None:
    job = cluster.launch(command("slices", "true", resources=ResourceConfig.with_tpu("v4-16")))
    until(lambda: "no node has TPU-v4-16-head" in cluster.poll(job).reason)
    assert cluster.poll(job).status is JobStatus.PENDING


def is_running(cluster: Any, job: Any) -> bool:
    return bool(cluster.poll(job).status is JobStatus.RUNNING)


def tables() -> tuple[Any, ...]:
    """Return what Ray has: living actors, groups that are not removed, and free resources."""
    import ray
    from ray._private import state as internal

    actors = Counter(a["State"] for a in internal.actors().values() if a["State"] != "DEAD")
    groups = Counter(g["state"] for g in ray.util.placement_group_table().values() if g["state"] != "REMOVED")
    free = {
        k: v for k, v in ray.available_resources().items() if not k.startswith(("object_store", "node:1"))
    }
    return actors, groups, free


KINDS: list[Callable[[int], JobRequest]] = [
    lambda i: command(f"single-{i}", "true"),
    lambda i: command(f"bad-{i}", "false"),
    lambda i: command(f"gang-{i}", "true", num_tasks=2, resources=ResourceConfig(cpu=0.5)),
    lambda i: command(f"large-{i}", "true", resources=ResourceConfig(cpu=64)),
    lambda i: command(f"never-{i}", "true", num_tasks=3, resources=ResourceConfig(cpu=2)),
    lambda i: command(f"slice-{i}", "true", resources=ResourceConfig.with_tpu("v4-16")),
    lambda i: command(f"long-{i}", "sleep", "600", num_tasks=2, resources=ResourceConfig(cpu=0.5)),
]


@pytest.mark.parametrize(
    "rounds",
    [pytest.param(len(KINDS), marks=pytest.mark.short), int(os.environ.get("FRAY_TEST_ROUNDS", "50"))],
)
def test_ray_31_nothing_is_left(cluster: Any, rounds: int) -> None:
    """After ends, failures, terminations of jobs that run and that wait, Ray's tables are as before."""
    import ray

    cluster.list_jobs()
    until(lambda: sum(node["Alive"] for node in ray.nodes()) == 1)  # those of other tests have gone
    whole = {"CPU": 2.0, "memory": ray.cluster_resources()["memory"], "node:__internal_head__": 0.999}
    before = until(lambda: found if (found := tables())[2] == whole else None)
    for i in range(rounds):
        request = KINDS[i % len(KINDS)](i)
        job = cluster.launch(request)
        if request.name.startswith("long"):
            until(functools.partial(is_running, cluster, job))
        if not request.name.startswith(("single", "bad", "gang")):
            cluster.terminate(job)
        assert cluster.wait(job, timeout=WAIT).status.ended
    until(lambda: tables() == before, f"Ray's tables are {before}")


def test_ray_group(cluster: Any, tmp_path: Path) -> None:
    """Jobs of a group start when all of their places are there; the places go with the last of them."""
    import ray

    from fray.cluster import JobGroupConfig

    half = ResourceConfig(cpu=0.5)
    holds, _, gate = held(cluster, tmp_path, "holds")
    waits = "touch @/$FRAY_JOB_NAME; until [ -e @/end ]; do sleep 0.05; done"
    requests = [
        command("first", *shell(tmp_path, waits)),
        command("second", *shell(tmp_path, waits), num_tasks=2, resources=half),
    ]
    jobs = cluster.launch_group(requests, JobGroupConfig("pair"))
    until(lambda: all(cluster.poll(job).reason for job in jobs))
    assert {cluster.poll(job).status for job in jobs} == {JobStatus.PENDING}
    gate.open()
    cluster.wait(holds, timeout=WAIT)
    until(lambda: (tmp_path / "first").exists() and (tmp_path / "second").exists())
    (tmp_path / "end").touch()
    infos = cluster.wait(jobs, timeout=WAIT)
    assert [(info.name, info.group, info.status) for info in infos] == [
        ("first", "pair", JobStatus.SUCCEEDED),
        ("second", "pair", JobStatus.SUCCEEDED),
    ]
    groups = ray.util.placement_group_table().values
    until(lambda: all(g["state"] == "REMOVED" for g in groups() if jobs[0] in g["name"]))
