"""Which of its alternatives a job has on a Ray cluster, without Ray."""

from __future__ import annotations

from fray.cluster import ChoiceReason, Entrypoint, GpuConfig, JobRequest, Namespace, ResourceConfig, TpuConfig
from fray.cluster.ray.alternatives import settled
from fray.cluster.ray.job_table import JobTable
from fray.cluster.ray.nodes import Node
from fray.cluster.ray.pending import reasons
from fray.cluster.ray.records import Environment, Launch

GPUS = Node("g", True, "10.0.0.1", {"CPU": 8, "GPU": 8, "memory": 1e12, "accelerator_type:H100": 1})
TPUS = Node("t", True, "10.0.0.2", {"CPU": 8, "TPU": 4, "TPU-v4-8-head": 1, "memory": 1e12})
CPUS = Node("c", True, "10.0.0.3", {"CPU": 8, "memory": 1e12})


def _launch() -> Launch:
    resources = ResourceConfig.with_accelerators(["v4-8", "h100:8"])
    return Launch(JobRequest("job", Entrypoint.from_command(["true"]), resources), Environment(), "package")


def _on(*nodes: Node) -> Launch:
    return settled(_launch(), {node.node_id: node for node in nodes})


def test_the_first_that_a_node_has() -> None:
    first = _on(TPUS, GPUS)
    assert first.request.resources.device == TpuConfig("v4-8")
    assert first.choice is not None
    assert (first.choice.accelerator, first.choice.reason) == ("v4-8", ChoiceReason.FIRST)
    second = _on(GPUS, CPUS)
    assert second.request.resources.device == GpuConfig("h100", 8)
    assert second.accelerators == ("v4-8", "h100:8")
    assert second.choice is not None
    assert (second.choice.accelerator, second.choice.reason) == ("h100:8", ChoiceReason.BLOCKED)
    assert [(p.accelerator, p.text) for p in second.choice.passed] == [
        ("v4-8", "no node has TPU-v4-8-head, which the first host of a v4-8 slice has")
    ]


def test_what_others_use_is_waited_for() -> None:
    """A node has it, so that its turn comes."""
    assert not TPUS.free
    assert _on(TPUS, GPUS).request.resources.device == TpuConfig("v4-8")


def test_all_reasons_where_no_node_has_any() -> None:
    nodes = {"c": CPUS}
    launch = settled(_launch(), nodes)
    assert launch.choice is None
    jobs = JobTable(Namespace("ns"), lambda _: None)
    (job_id,), _, _ = jobs.launch([launch], "", "request", 0.0)
    assert reasons(jobs.job(job_id), nodes) == (
        "v4-8: no node has TPU-v4-8-head, which the first host of a v4-8 slice has",
        "h100:8: no node has 8 GPU",
    )
    assert jobs.job(job_id).info().accelerators == ("v4-8", "h100:8")


def test_one_device_is_no_choice() -> None:
    launch = Launch(JobRequest("job", Entrypoint.from_command(["true"])), Environment(), "package")
    assert settled(launch, {"c": CPUS}) is launch
