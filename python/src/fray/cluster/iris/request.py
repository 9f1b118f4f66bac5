"""Requests of fray as Iris's LaunchJobRequest, and what of them Iris has nothing for.

How resources become constraints and gangs is as Marin's own client of Iris does it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fray.cluster.check import tpu_types
from fray.cluster.errors import FieldError, InvalidRequestError
from fray.cluster.iris.names import is_task_number
from fray.cluster.resources import ResourceConfig, parse_size
from fray.cluster.types import Band, JobRequest, NameClash

_UNLIMITED = (1 << 31) - 1  # Iris counts retries in 32 bits
_ACCELERATOR_CPU = 4000  # millicores, the least that Iris's own client asks for beside an accelerator
_ANYWHERE = "*"
_POLICY = {
    NameClash.ERROR: "EXISTING_JOB_POLICY_UNSPECIFIED",  # Iris's ERROR rejects where a job has ended, too
    NameClash.KEEP: "EXISTING_JOB_POLICY_KEEP",
    NameClash.RECREATE: "EXISTING_JOB_POLICY_RECREATE",
}
_BAND = {
    Band.PRODUCTION: "PRIORITY_BAND_PRODUCTION",
    Band.INTERACTIVE: "PRIORITY_BAND_INTERACTIVE",
    Band.BATCH: "PRIORITY_BAND_BATCH",
}
_SCOPED_VMEM = (("v5", 50000), ("v6e", 98304))  # KiB by which libtpu is set up, by the beginning of the type

Body = dict[str, Any]


def check(request: JobRequest, user: str) -> None:
    """Raise InvalidRequestError, with all that does not fit, unless Iris can carry the request out."""
    found = list(_misfits(request, user))
    if found:
        raise InvalidRequestError("Iris cannot run this job", found)


def _misfits(request: JobRequest, user: str) -> Iterator[FieldError]:
    if is_task_number(request.name):
        yield FieldError("name", f'"{request.name}" is a number, which Iris takes for a task of the parent')
    if request.user not in (None, user):
        yield FieldError("user", f"the job's name in Iris begins with its user, and this client is {user}'s")
    if request.reservation_id:
        yield FieldError("reservation_id", "Iris has no reservations")
    if request.priority:
        yield FieldError("priority", "Iris has bands only: set band instead")
    if request.health_check is not None:
        yield FieldError("health_check", "Iris has no health checks of jobs")
    if request.stop_grace_seconds is not None:
        yield FieldError("stop_grace_seconds", "Iris decides itself how long tasks have to stop")
    if request.labels:
        yield FieldError("labels", "Iris has no labels of jobs")
    yield from _misfits_of_alternatives(request.resources)


def _misfits_of_alternatives(resources: ResourceConfig) -> Iterator[FieldError]:
    shapes = {variant: _shape(variant) for variant in _variants(resources)}
    if len(set(shapes.values())) > 1:
        each = ", ".join(f"{v}: {hosts} x {chips}" for v, (hosts, chips) in shapes.items())
        yield FieldError(
            "resources.accelerators",
            f"alternatives on Iris have hosts and chips of each host in common, these differ ({each})",
        )


def launch_of(request: JobRequest, job_id: str, region: str) -> Body:
    """Return the message of a request that fits, but for its entrypoint, environment and bundle.

    Args:
        request: See `check`.
        job_id: What the job will be called in Iris.
        region: Where the task is that launches it; "": nowhere.
    """
    resources = request.resources
    tasks, hosts = tasks_of(request), hosts_of(resources)
    body: Body = {
        "name": job_id,
        "resources": _resources(resources),
        "replicas": tasks,
        "maxRetriesFailure": _retries(request.max_retries_failure),
        "maxRetriesPreemption": _retries(request.max_retries_preemption),
        "existingJobPolicy": _POLICY[request.name_clash],
    }
    constraints = _constraints(resources, region)
    if constraints:
        body["constraints"] = constraints
    if tasks > 1 and (resources.tpu and hosts > 1):
        body["coscheduling"] = {"groupBy": "tpu-name"}
    if tasks > 1 and _gpu(resources):
        body["coscheduling"] = {"groupBy": "leafgroup"}
    if request.ports:
        body["ports"] = list(request.ports)
    if request.band is not None:
        body["priorityBand"] = _BAND[request.band]
    for field, seconds in (
        ("timeout", request.timeout_seconds),
        ("schedulingTimeout", request.scheduling_timeout_seconds),
    ):
        if seconds is not None:
            body[field] = {"milliseconds": str(math.ceil(seconds * 1000))}
    if request.environment is not None and request.environment.image:
        body["taskImage"] = request.environment.image
    return body


def tasks_of(request: JobRequest) -> int:
    """Return how many tasks a job has: a host of a slice runs one."""
    return max(request.num_tasks, request.resources.replicas * hosts_of(request.resources))


def hosts_of(resources: ResourceConfig) -> int:
    """Return how many hosts one replica has."""
    return _shape(resources.tpu)[0] if resources.tpu else 1


def variables_of(resources: ResourceConfig) -> dict[str, str]:
    """Return defaults of a job's variables for JAX and libtpu, without those that Iris itself sets."""
    if not resources.tpu:
        return {} if _gpu(resources) else {"JAX_PLATFORMS": "cpu"}
    for begin, size in _SCOPED_VMEM:
        if resources.tpu.startswith(begin):
            return {"LIBTPU_INIT_ARGS": f"--xla_tpu_scoped_vmem_limit_kib={size}"}
    return {}


def _retries(given: int) -> int:
    return _UNLIMITED if given < 0 else given


def _resources(resources: ResourceConfig) -> Body:
    if resources.tpu:
        _, chips = _shape(resources.tpu)
        device = {"tpu": {"variant": _variant(resources.tpu), "count": chips}}
        return {"cpuMillicores": _ACCELERATOR_CPU, "device": device}
    body: Body = {
        "cpuMillicores": math.ceil(resources.cpu * 1000),
        "memoryBytes": str(parse_size(resources.ram, "resources.ram")),
        "diskBytes": str(parse_size(resources.disk, "resources.disk")),
    }
    gpu = _gpu(resources)
    if gpu is not None:
        body["cpuMillicores"] = max(body["cpuMillicores"], _ACCELERATOR_CPU)
        body["device"] = {"gpu": {"variant": gpu.type, "count": gpu.count}}
    return body


def _constraints(resources: ResourceConfig, region: str) -> list[Body]:
    found: list[Body] = []
    if not resources.preemptible:
        found.append(_among("preemptible", ["false"]))
    regions = list(resources.regions or ([region] if region else []))
    if regions and _ANYWHERE not in regions:
        found.append(_among("region", regions))
    zone = getattr(resources, "zone", None)
    if zone:
        found.append(_among("zone", [zone]))
    variants = _variants(resources)
    if len(variants) > 1:
        found.append(_among("device-variant", variants))
    return found


def _among(key: str, values: Sequence[str]) -> Body:
    """Return the constraint that an attribute of a worker has one of some values."""
    if len(values) == 1:
        return {"key": key, "op": "CONSTRAINT_OP_EQ", "value": {"stringValue": values[0]}}
    return {"key": key, "op": "CONSTRAINT_OP_IN", "values": [{"stringValue": value} for value in values]}


def _variants(resources: ResourceConfig) -> list[str]:
    """Return the types of accelerators that would do, the preferred one first."""
    others: Sequence[Any] = getattr(resources, "alternatives", None) or ()
    own = resources.tpu or (_gpu(resources).type if _gpu(resources) else "")
    return [_variant(str(getattr(each, "type", each))) for each in (own, *others) if each]


def _gpu(resources: ResourceConfig) -> Any:
    """Return the GPUs of one machine, None without."""
    device = resources.device
    return device if type(device).__name__ == "GpuConfig" else None


def _shape(tpu: str) -> tuple[int, int]:
    """Return how many hosts a slice of a type has, and how many chips each; (1, 0) of what is no TPU type.

    The number in a type counts cores, of which chips of v2, v3, v4, v5p and tpu7x have two, and chips in the
    other types (cloud.google.com/tpu/docs/system-architecture-tpu-vm).
    """
    variant = _variant(tpu)
    hosts = _hosts().get(variant)
    generation, _, size = variant.rpartition("-")
    if hosts is None:
        return 1, 0
    cores = 1 if generation in ("v5litepod", "v6e") else 2
    return hosts, int(size) // cores // hosts


def _hosts() -> Mapping[str, int]:
    return tpu_types()


def _variant(tpu: str) -> str:
    return "v5litepod" + tpu.removeprefix("v5e") if tpu.startswith("v5e-") else tpu
