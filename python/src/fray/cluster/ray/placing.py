"""Where supervisors run: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fray.cluster.ray.demand import demand_of, region_selector
from fray.cluster.ray.nodes import Node
from fray.cluster.ray.records import Job
from fray.cluster.types import TaskState


def alone(job: Job) -> bool:
    """Report whether a job has one task and shares no places: its supervisor takes the place itself."""
    return job.shared is None and demand_of(job.launch.request).tasks == 1


def lost_with_place(job: Job) -> bool:
    """Report whether a job's supervisor had the place that its last attempt lost."""
    return alone(job) and bool(job.attempts) and job.attempts[-1].outcome is TaskState.PREEMPTED


def supervisor_options(job: Job, nodes: Mapping[str, Node]) -> dict[str, Any]:
    """Return the options of the Ray actor that supervises a job."""
    demand = demand_of(job.launch.request)
    if not alone(job):
        return {"num_cpus": 0}
    options = demand.bundle.options()
    if demand.tpu:
        resources = dict(demand.bundle.resources)
        options["resources"] = {**resources, demand.head: 1.0}
    if demand.regions:
        options["label_selector"] = region_selector(demand.regions, nodes)
    return options
