"""What a job asks of Ray: pure functions from resources to bundles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fray.cluster.check import canonical_tpu, tpu_types
from fray.cluster.gpus import ANY_GPU, canonical_gpu
from fray.cluster.ray.nodes import Node
from fray.cluster.resources import ResourceConfig, parse_size
from fray.cluster.types import JobRequest

HEAD_NODE = "head_node"
"""The custom resource by which clusters mark nodes that are not preempted."""
_SHARE = 0.0001  # of it, so that any number of jobs fits
GPU_TYPE = "accelerator_type:"
"""How the resource begins by which Ray marks nodes with the type of their GPUs."""
_OF_TYPE = 0.001  # as Ray itself asks for its option accelerator_type
_NAMES = {  # of Ray for types whose names are others there: those that drivers report; people give A100-80G
    "a100-80gb": "A100-80G",
    "a6000": "RTX-A6000",
    "rtx3090": "GeForce-RTX-3090",
    "rtx4090": "GeForce-RTX-4090",
    "rtx5090": "GeForce-RTX-5090",
}
REGION_LABELS = ("ray.io/region", "region", "topology.kubernetes.io/region")
"""Labels of nodes that name their region, the first that a node has."""
SLICE_LABEL = "ray.io/tpu-slice-name"
WORKER_LABEL = "ray.io/tpu-worker-id"

_CORES = ("v2", "v3", "v4", "v5p")  # generations whose types count cores, two to a chip


@dataclass(frozen=True)
class Bundle:
    """What one task takes from a node."""

    cpu: float = 0
    memory: int = 0
    """Bytes."""
    gpu: float = 0
    resources: Mapping[str, float] = field(default_factory=dict)

    def wanted(self) -> dict[str, float]:
        """Return amounts by Ray's names, as bundles of placement groups have them."""
        named = {"CPU": self.cpu, "memory": float(self.memory), "GPU": self.gpu, **self.resources}
        return {name: amount for name, amount in named.items() if amount}

    def options(self) -> dict[str, object]:
        """Return the options of a Ray actor that takes this."""
        found: dict[str, object] = {"num_cpus": self.cpu, "num_gpus": self.gpu}
        if self.memory:
            found["memory"] = self.memory
        if self.resources:
            found["resources"] = dict(self.resources)
        return found


@dataclass(frozen=True)
class Demand:
    """What all tasks of a job take."""

    bundle: Bundle
    """Of each task."""
    tasks: int
    tpu: str = ""
    """As Ray names the type, "" without one."""
    slices: int = 0
    """How many slices, 0 without TPUs."""
    regions: tuple[str, ...] = ()
    """Where it may run; empty: anywhere."""

    @property
    def hosts(self) -> int:
        """How many hosts each slice has."""
        return self.tasks // self.slices if self.slices else 1

    @property
    def head(self) -> str:
        """The resource that the first host of a slice of that type has."""
        return f"TPU-{self.tpu}-head"


def demand_of(request: JobRequest) -> Demand:
    """Return what a request asks for, which has been checked: of the first of its accelerators."""
    return demand_for(request.resources, request.num_tasks)


def demand_for(resources: ResourceConfig, num_tasks: int) -> Demand:
    """Return what a job with these resources and so many tasks asks for."""
    pinned: dict[str, float] = {} if resources.preemptible else {HEAD_NODE: _SHARE}
    regions = tuple(resources.regions or ())
    if resources.tpu:
        kind = canonical_tpu(resources.tpu)
        hosts = tpu_types()[kind]
        slices = max(resources.replicas, num_tasks // hosts, 1)
        bundle = Bundle(resources={"TPU": float(chips(kind) // hosts), **pinned})
        return Demand(bundle, hosts * slices, kind, slices, regions)
    gpus, of_type = _gpus(resources)
    bundle = Bundle(resources.cpu, parse_size(resources.ram), gpus, {**of_type, **pinned})
    return Demand(bundle, max(num_tasks, resources.replicas), regions=regions)


def on_each(request: JobRequest) -> list[JobRequest]:
    """Return a request as it is on each of its alternatives, in order of preference."""
    resources = request.resources
    return [
        replace(request, resources=replace(resources, device=device, alternatives=()))
        for device in (resources.device, *resources.alternatives)
    ]


def region_selector(regions: Sequence[str], nodes: Mapping[str, Node]) -> dict[str, str]:
    """Return the labels by which Ray picks nodes of these regions: of the label that nodes have."""
    used = {label for node in nodes.values() if node.alive for label in node.labels}
    label = next((label for label in REGION_LABELS if label in used), REGION_LABELS[0])
    return {label: f"in({','.join(regions)})"}


def _gpus(resources: ResourceConfig) -> tuple[float, dict[str, float]]:
    """Return how many GPUs each task takes, and the resource by which Ray marks nodes with their type."""
    gpu = resources.gpu
    if gpu is None:
        return 0.0, {}
    if gpu.type == ANY_GPU:
        return float(gpu.count), {}
    kind = canonical_gpu(gpu.type)
    return float(gpu.count), {GPU_TYPE + _NAMES.get(kind, kind.upper()): _OF_TYPE}


def chips(tpu: str) -> int:
    """Return how many chips a slice of a type has."""
    generation, _, size = tpu.rpartition("-")
    return int(size) // 2 if generation in _CORES else int(size)
