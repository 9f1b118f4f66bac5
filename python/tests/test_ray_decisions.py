"""What decides about jobs on a Ray cluster, without Ray."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fray.cluster.ray
from fray.cluster import (
    AlreadyExistsError,
    Entrypoint,
    JobRequest,
    JobStatus,
    NameClash,
    Namespace,
    RefusedError,
    ResourceConfig,
    TaskState,
    Termination,
    TerminationCause,
)
from fray.cluster.ray import transitions
from fray.cluster.ray.alternatives import settled
from fray.cluster.ray.demand import Bundle, demand_of, region_selector
from fray.cluster.ray.job_table import JobTable
from fray.cluster.ray.logs import Chunk, Lines
from fray.cluster.ray.nodes import Node, loss_of, node_of
from fray.cluster.ray.pending import reasons
from fray.cluster.ray.placing import supervisor_options
from fray.cluster.ray.process import Process
from fray.cluster.ray.records import Environment, Job, Launch, Place, TaskEnd
from fray.cluster.ray.spec import Spec, parse, resolve, token_of
from fray.cluster.ray.unpack import unpack
from fray.cluster.ray.variables import Seat, variables_of
from fray.cluster.remote.bundle import packed

HERE = Place("node-1", "10.0.0.1")


def launch(name: str = "job", **options: Any) -> Launch:
    request = JobRequest(name, Entrypoint.from_command(["true"]), **options)
    return Launch(request, Environment(), "package")


def table() -> tuple[JobTable, list[Job]]:
    changed: list[Job] = []
    return JobTable(Namespace("ns"), changed.append), changed


def launched(jobs: JobTable, made: Launch) -> Job:
    (job_id,), _, _ = jobs.launch([made], "", f"request of {made.request.name}", 0.0)
    return jobs.job(job_id)


def test_specs() -> None:
    assert parse("ray:auto") == Spec("auto")
    assert parse("ray:head:6379") == Spec("head:6379")
    assert parse("ray:head:6379?namespace=team") == Spec("head:6379", "team")
    assert parse("ray://head:10001").client
    assert parse("ray://head:10001").endpoint == ("head", 10001)
    assert parse("ray:[::1]:6379").endpoint == ("::1", 6379)


@pytest.mark.parametrize(
    "text",
    ["ray", "ray:", "ray:head", "ray:head:0", "rays:auto", "ray:user@head:1", "ray:head:1/x", "ray://:1"],
)
def test_specs_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match='names no Ray cluster; write "ray:auto"'):
        parse(text)
    with pytest.raises(ValueError, match="team means nothing; known is namespace"):
        parse("ray:auto?team=x")


def test_auto(tmp_path: Path) -> None:
    current = tmp_path / "current"
    auto = Spec("auto", "team")
    assert resolve(auto, {}, str(current)) is None
    current.write_text("10.0.0.9:6379\n")
    assert resolve(auto, {}, str(current)) == Spec("10.0.0.9:6379", "team")
    assert resolve(auto, {"RAY_ADDRESS": "ray://head:10001"}, str(current)) == Spec(
        "ray://head:10001", "team"
    )
    assert resolve(Spec("other:1"), {"RAY_ADDRESS": "head:2"}, str(current)) == Spec("other:1")
    with pytest.raises(ValueError, match='RAY_ADDRESS is "http://head"'):
        resolve(auto, {"RAY_ADDRESS": "http://head"}, str(current))


def test_tokens(tmp_path: Path) -> None:
    assert token_of({}, tmp_path) == ""
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("home\n")
    (tmp_path / "file").write_text("file\n")
    assert token_of({}, tmp_path) == "home"
    assert token_of({"RAY_AUTH_TOKEN_PATH": str(tmp_path / "file")}, tmp_path) == "file"
    assert token_of({"RAY_AUTH_TOKEN": "own", "RAY_AUTH_TOKEN_PATH": "/none"}, tmp_path) == "own"


@pytest.mark.parametrize(
    ("resources", "tasks", "bundle", "slices"),
    [
        (ResourceConfig(cpu=2, ram="1g"), 1, Bundle(2, 1 << 30), 0),
        (ResourceConfig(ram="1m", replicas=3), 3, Bundle(1, 1 << 20), 0),
        (ResourceConfig(ram="1m", preemptible=False), 1, Bundle(1, 1 << 20, 0, {"head_node": 0.0001}), 0),
        (ResourceConfig.with_tpu("v4-8"), 1, Bundle(resources={"TPU": 4.0}), 1),
        (ResourceConfig.with_tpu("v4-16", slice_count=2), 4, Bundle(resources={"TPU": 4.0}), 2),
        (ResourceConfig.with_tpu("v5e-16"), 4, Bundle(resources={"TPU": 4.0}), 1),
        (ResourceConfig.with_tpu("v5p-8"), 1, Bundle(resources={"TPU": 4.0}), 1),
    ],
)
def test_demands(resources: ResourceConfig, tasks: int, bundle: Bundle, slices: int) -> None:
    demand = demand_of(launch(resources=resources).request)
    assert (demand.tasks, demand.bundle, demand.slices) == (tasks, bundle, slices)


@pytest.mark.parametrize(
    ("kind", "resources"),
    [
        ("auto", {}),
        ("h100", {"accelerator_type:H100": 0.001}),
        ("NVIDIA H100 80GB HBM3", {"accelerator_type:H100": 0.001}),
        ("nvidia-tesla-a100", {"accelerator_type:A100": 0.001}),
        ("a100-80gb", {"accelerator_type:A100-80G": 0.001}),
        ("rtx-pro-6000", {"accelerator_type:RTX-PRO-6000": 0.001}),
        ("rtx4090", {"accelerator_type:GeForce-RTX-4090": 0.001}),
    ],
)
def test_gpus(kind: str, resources: dict[str, float]) -> None:
    demand = demand_of(launch(resources=ResourceConfig.with_gpu(kind, 8, replicas=2)).request)
    assert (demand.tasks, demand.bundle.gpu, demand.bundle.resources) == (2, 8.0, resources)
    assert demand.bundle.options()["num_gpus"] == 8.0


def gpu_node(kind: str, count: int, free: int) -> Node:
    typed = {f"accelerator_type:{kind}": 1.0, "CPU": 8.0, "memory": float(1 << 34)}
    return Node(kind, True, total={**typed, "GPU": count}, free={**typed, "GPU": free})


@pytest.mark.parametrize(
    ("wanted", "free", "found"),
    [
        (["h100:8", "a100:8"], (8, 8), "h100"),  # the first
        (["h100:8", "a100:8"], (2, 8), "a100"),  # the first that is free
        (["b200:8", "h100:8", "a100:4"], (2, 2), "h100"),  # none is free: the first that is there
        (["b200:8", "v5litepod-16"], (8, 8), ""),  # none is there: it waits for any
        (["h100:16", "a100:8"], (8, 8), "a100"),  # no node has so many
    ],
)
def test_alternatives(wanted: list[str], free: tuple[int, int], found: str) -> None:
    nodes = {"h": gpu_node("H100", 8, free[0]), "a": gpu_node("A100", 8, free[1])}
    made = settled(launch(resources=ResourceConfig.with_accelerators(wanted)), nodes)
    assert made.accelerators == tuple(ResourceConfig.with_accelerators(wanted).accelerators)
    if not found:
        assert made.choice is None
        return
    resources = made.request.resources
    assert (getattr(resources.device, "type", ""), resources.alternatives) == (found, ())


def test_a_type_of_gpus_that_no_node_has() -> None:
    jobs, _ = table()
    job = launched(jobs, launch("one", resources=ResourceConfig.with_gpu("b200")))
    assert reasons(job, {"h": gpu_node("H100", 8, 8)}) == ("no node has GPUs of type B200",)


def test_supervisors_take_the_place_of_a_single_task() -> None:
    jobs, _ = table()
    one = launched(jobs, launch("one", resources=ResourceConfig(cpu=2, ram="1m", regions=["us", "eu"])))
    nodes = {"a": Node("a", True, labels={"region": "us"})}
    options = supervisor_options(one, nodes)
    assert (options["num_cpus"], options["memory"]) == (2, 1 << 20)
    assert options["label_selector"] == {"region": "in(us,eu)"}
    assert region_selector(["us"], {}) == {"ray.io/region": "in(us)"}
    gang = launched(jobs, launch("gang", num_tasks=2))
    assert supervisor_options(gang, nodes) == {"num_cpus": 0}
    tpu = launched(jobs, launch("tpu", resources=ResourceConfig.with_tpu("v4-8")))
    assert supervisor_options(tpu, nodes)["resources"] == {"TPU": 4.0, "TPU-v4-8-head": 1.0}


GIB = float(1 << 30)


def node(name: str, free: dict[str, float] | None = None, **total: float) -> Node:
    return Node(name, True, f"ip-{name}", {"memory": GIB, **total}, {"memory": GIB, **(free or total)})


TPUS: dict[str, Any] = {"TPU-v4-8-head": 1.0, "TPU": 4.0}


@pytest.mark.parametrize(
    ("options", "nodes", "reason"),
    [
        ({"cpu": 64}, [node("a", CPU=2), node("b", CPU=4)], "no node has 64 CPU; the largest has 4 CPU"),
        (
            {"ram": "2g"},
            [node("a", CPU=2)],
            "no node has 2048 MiB of memory; the largest has 1024 MiB of memory",
        ),
        (
            {"cpu": 2},
            [node("a", {"CPU": 1}, CPU=2)],
            "it waits for 2 CPU and 128 MiB of memory: ip-a has 1 CPU",
        ),
        (
            {"replicas": 3, "cpu": 2},
            [node("a", CPU=4)],
            "no 3 places with 2 CPU and 128 MiB of memory each exist",
        ),
        ({"replicas": 2}, [node("a", {"CPU": 1}, CPU=2)], "it waits for 2 times 1 CPU"),
        (
            {"preemptible": False},
            [node("a", CPU=2)],
            "no node has the resource head_node, to which preemptible",
        ),
        (
            {"regions": ["mars"]},
            [node("a", CPU=2)],
            "no node is in mars: no node has a label with its region",
        ),
        ({}, [node("a", CPU=2)], "its worker process on Ray starts"),
        ({}, [], "its worker process on Ray starts"),
    ],
)
def test_reasons_of_waiting(options: dict[str, Any], nodes: list[Node], reason: str) -> None:
    jobs, _ = table()
    job = launched(jobs, launch(resources=ResourceConfig(**options)))
    assert reasons(job, {each.node_id: each for each in nodes})[0].startswith(reason)


@pytest.mark.parametrize(
    ("count", "nodes", "reason"),
    [
        (1, [node("a", CPU=2)], "no node has TPU-v4-8-head, which the first host of a v4-8 slice has"),
        (2, [node("a", **TPUS)], "it needs 2 slices of type v4-8, and the cluster has 1"),
        (1, [node("a", {"TPU": 0}, **TPUS)], "it waits for 1 of the 1 slices of type v4-8: others use them"),
    ],
)
def test_reasons_of_waiting_for_slices(count: int, nodes: list[Node], reason: str) -> None:
    jobs, _ = table()
    job = launched(jobs, launch(resources=ResourceConfig.with_tpu("v4-8", slice_count=count)))
    assert reasons(job, {each.node_id: each for each in nodes}) == (reason,)


@pytest.mark.parametrize(
    ("alive", "known", "lost"), [(True, True, False), (False, True, True), (False, False, False)]
)
def test_losses_of_nodes(alive: bool, known: bool, lost: bool) -> None:
    """A node that Ray's table does not have is in doubt, which ends nothing."""
    entry = {
        "NodeID": "node-1",
        "Alive": alive,
        "NodeManagerAddress": "10.0.0.1",
        "DeathReasonMessage": "gone",
    }
    nodes = {"node-1": node_of(entry, {})} if known else {}
    assert loss_of([Place("node-0"), HERE], nodes) == ("Ray's node 10.0.0.1 died: gone" if lost else "")


def test_budgets_are_apart() -> None:
    jobs, _ = table()
    job = launched(jobs, launch(max_retries_failure=1, max_retries_preemption=2))
    failed = TaskEnd(0, TaskState.FAILED, "exit status 1", 1)
    for number, event in enumerate(["lose", "finish", "lose"], 1):
        assert jobs.begin(job.job_id, f"holder {number}", [HERE], 1.0) is not None
        if event == "lose":
            jobs.lose(job.job_id, number, "Ray's node died", 2.0)
        else:
            jobs.finish(job.job_id, number, [failed], 2.0)
        assert jobs.job(job.job_id).status is JobStatus.PENDING
    now = jobs.job(job.job_id)
    assert (now.failures, now.preemptions, now.attempt) == (1, 2, 3)
    jobs.begin(job.job_id, "holder", [HERE], 3.0)
    ended = jobs.lose(job.job_id, 4, "Ray's node died", 4.0)
    assert ended is not None
    assert (ended.status, ended.failures, ended.preemptions) == (JobStatus.FAILED, 1, 3)
    assert ended.reason == "it was preempted 3 times, the last time because Ray's node died"


def test_failures_that_are_permanent() -> None:
    jobs, _ = table()
    job = launched(jobs, launch(max_retries_failure=50))
    jobs.begin(job.job_id, "holder", [HERE], 1.0)
    missing = Termination(TerminationCause.PACKAGE_MISSING, "no such package")
    ended = jobs.finish(job.job_id, 1, [TaskEnd(0, TaskState.FAILED, "set-up", None, (), missing)], 2.0)
    assert ended is not None
    assert (ended.status, ended.failures) == (JobStatus.FAILED, 1)
    assert ended.attempts[0].termination == missing


def test_the_start_fence() -> None:
    """A job that was stopped while it waited never runs."""
    jobs, _ = table()
    job = launched(jobs, launch())
    jobs.stop(job.job_id, "stopped by a client", 1.0)
    assert jobs.begin(job.job_id, "holder", [HERE], 2.0) is None
    assert jobs.job(job.job_id).over


def test_former_attempts_are_fenced() -> None:
    jobs, _ = table()
    job = launched(jobs, launch())
    first = jobs.begin(job.job_id, "one", [HERE], 1.0)
    again = jobs.begin(job.job_id, "one", [HERE], 1.0)
    assert first == again  # the same process asks again
    second = jobs.begin(job.job_id, "two", [HERE], 2.0)
    assert second is not None
    assert second.attempt == 2
    assert jobs.job(job.job_id).preemptions == 1
    ended = [TaskEnd(0, TaskState.SUCCEEDED, "", 0)]
    assert jobs.finish(job.job_id, 1, ended, 3.0) is None
    assert jobs.lose(job.job_id, 1, "late", 3.0) is None
    done = jobs.finish(job.job_id, 2, ended, 4.0)
    assert done is not None
    assert (done.status, done.draining, done.over) == (JobStatus.SUCCEEDED, True, False)
    jobs.drained(job.job_id)
    assert jobs.job(job.job_id).over


def test_a_stop_drains_what_runs() -> None:
    jobs, _ = table()
    job = launched(jobs, launch())
    jobs.begin(job.job_id, "one", [HERE], 1.0)
    stopped = jobs.stop(job.job_id, "stopped by a client", 2.0)
    assert (stopped.status, stopped.draining) == (JobStatus.STOPPED, True)
    assert stopped.tasks[0].state is TaskState.KILLED
    assert jobs.stop(job.job_id, "again", 3.0) == stopped


def test_names_and_requests() -> None:
    jobs, changed = table()
    first, new, _ = jobs.launch([launch()], "", "r1", 0.0)
    assert len(new) == 1
    assert jobs.launch([launch()], "", "r1", 0.0) == (first, [], [])  # asked again
    with pytest.raises(AlreadyExistsError, match='job "job" lives in namespace ns as job-'):
        jobs.launch([launch("other"), launch()], "", "r2", 0.0)
    assert [job.launch.request.name for job in jobs] == ["job"]  # all or none
    assert jobs.launch([launch(name_clash=NameClash.KEEP)], "", "r3", 0.0) == (first, [], [])
    _, _, clashing = jobs.launch([launch(name_clash=NameClash.RECREATE)], "", "r4", 0.0)
    assert [job.job_id for job in clashing] == first
    assert len(changed) == 1


def test_parents() -> None:
    jobs, _ = table()
    parent = launched(jobs, launch("parent"))
    jobs.begin(parent.job_id, "one", [HERE], 1.0)
    own = replace(launch("child"), parent=parent.job_id, parent_attempt=1)
    apart = replace(launch("apart", detached=True), parent=parent.job_id, parent_attempt=1)
    child = launched(jobs, own)
    launched(jobs, apart)
    assert jobs.children(parent.job_id) == [child]
    jobs.lose(parent.job_id, 1, "lost", 2.0)
    with pytest.raises(RefusedError, match=r"attempt 1 of job parent-.* is over"):
        launched(jobs, replace(own, request=replace(own.request, name="late")))


def test_what_was_stored_is_taken_over() -> None:
    jobs, changed = table()
    job = launched(jobs, launch())
    jobs.begin(job.job_id, "one", [HERE], 1.0)
    after = JobTable(Namespace("ns"), lambda _job: None)
    after.load(changed[-1:])
    assert after.current(job.job_id, 1) is not None
    with pytest.raises(AlreadyExistsError):
        after.launch([launch()], "", "r", 2.0)


def test_variables_of_slices() -> None:
    jobs, _ = table()
    job = launched(jobs, launch(resources=ResourceConfig.with_tpu("v4-16", slice_count=2)))
    places = [Place(f"n{i}", f"ip-{i}", f"s{i // 2}", i % 2) for i in range(4)]
    seat = Seat(job, 1, 3, places, "ip-0:1234", "ray:head:1")
    base = {"PATH": "/bin", "RAY_JOB_ID": "01", "FRAY_JOB_ID": "of-another", "JAX_PLATFORMS": "cpu"}
    found = variables_of(seat, base, {"PJRT_DEVICE": "own"}, {"http-alt": 80})
    assert found["PATH"] == "/bin"
    assert "RAY_JOB_ID" not in found
    assert (found["FRAY_JOB_ID"], found["FRAY_CLUSTER_SPEC"]) == (job.job_id, "ray:head:1")
    assert (found["TPU_WORKER_ID"], found["TPU_WORKER_HOSTNAMES"]) == ("1", "ip-2,ip-3")
    assert (found["TPU_NAME"], found["JAX_PLATFORMS"], found["PJRT_DEVICE"]) == ("s1", "tpu,cpu", "own")
    assert (found["JAX_PROCESS_ID"], found["JAX_NUM_PROCESSES"]) == ("3", "4")
    assert (found["MEGASCALE_SLICE_ID"], found["MEGASCALE_NUM_SLICES"]) == ("1", "2")
    assert found["MEGASCALE_COORDINATOR_ADDRESS"] == "ip-0:8081"
    assert found["FRAY_PORT_HTTP_ALT"] == "80"


def test_backoff_grows_to_a_bound() -> None:
    assert [transitions.backoff(n) for n in (0, 1, 2, 3)] == [0.1, 0.1, 0.2, 0.4]
    assert transitions.backoff(1000) == 5.0


def test_bundles_are_unpacked(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "pkg").mkdir(parents=True)
    (source / "pkg" / "main.py").write_text("x" * 300_000)  # of several blocks
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    with packed(str(source)) as blob:
        blob.content.seek(0)
        data = blob.content.read()
    target.mkdir()
    unpack(data, target)
    assert (target / "pkg" / "main.py").read_text() == "x" * 300_000
    assert (target / "run.sh").stat().st_mode & 0o111
    for broken in (b"tar", data[:-5], data[:6]):
        with pytest.raises(ValueError, match="frame"):
            unpack(broken, target)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no subreapers")
def test_a_program_ends_with_its_whole_tree(tmp_path: Path) -> None:
    written: list[bytes] = []
    text = "setsid sleep 600 & echo $!; exit 7"
    process = Process(["sh", "-c", text], {"PATH": "/usr/bin:/bin"}, str(tmp_path), written.append)
    end = process.wait()
    assert (end.code, end.reason) == (7, "exit status 7")
    assert not Path(f"/proc/{b''.join(written).decode().strip()}").exists()


def test_a_program_that_is_missing(tmp_path: Path) -> None:
    process = Process(["no-such-program"], {"PATH": "/bin"}, str(tmp_path), lambda _data: None)
    end = process.wait()
    assert (end.code, end.started) == (127, False)
    assert "no-such-program" in end.reason


def test_nothing_imports_ray() -> None:
    text = "import sys, fray, fray.v2, fray.cluster, fray.cluster.ray; print('ray' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )


PURE = ("demand", "job_table", "nodes", "pending", "placing", "records", "spec", "transitions", "variables")


@pytest.mark.parametrize("name", PURE)
def test_what_decides_does_not_import_ray(name: str) -> None:
    """`nodes` reads Ray's table in a function of its own."""
    tree = ast.parse((Path(fray.cluster.ray.__file__).parent / f"{name}.py").read_text())
    modules = [n.module or "" for n in tree.body if isinstance(n, ast.ImportFrom)]
    modules += [alias.name for n in tree.body if isinstance(n, ast.Import) for alias in n.names]
    assert not [module for module in modules if module.split(".")[0] == "ray"]


def test_lines_of_several_tasks() -> None:
    lines = Lines(prefixed=True)
    euro = "€\n".encode()
    written = [(0, b"one\ntw"), (0, b"o\n"), (1, b"half"), (0, b"other\n"), (1, euro[:2]), (1, euro[2:])]
    printed = "".join(lines.text(Chunk(i, 1, task, data)) for i, (task, data) in enumerate(written))
    assert printed == "0 | one\n0 | two\n1 | half\n0 | other\n1 | €\n"
    assert Lines(prefixed=False).text(Chunk(0, 1, 3, b"plain")) == "plain"


def test_blobs_go_with_the_last_job_that_needs_them() -> None:
    jobs, _ = table()
    first = launched(jobs, replace(launch("first"), callable="shared"))
    second = launched(jobs, replace(launch("second"), callable="shared"))
    jobs.stop(first.job_id, "stopped", 1.0)
    assert jobs.unused(jobs.job(first.job_id)) == []
    jobs.stop(second.job_id, "stopped", 1.0)
    assert jobs.unused(jobs.job(second.job_id)) == ["shared"]


def test_a_launch_that_is_asked_for_again_after_a_restart() -> None:
    jobs, changed = table()
    job = launched(jobs, launch())
    after = JobTable(Namespace("ns"), lambda _job: None)
    after.load(changed)
    assert after.launch([launch()], "", "request of job", 1.0) == ([job.job_id], [], [])
