"""Requests of fray as Iris's LaunchJobRequest, and what of them Iris has nothing for.

How resources become constraints and gangs is as Marin's own client of Iris does it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from fray.cluster.errors import FieldError, InvalidRequestError
from fray.cluster.iris.devices import devices_of
from fray.cluster.iris.names import is_task_number
from fray.cluster.resources import ResourceConfig, parse_size
from fray.cluster.types import Band, JobRequest, NameClash

_UNLIMITED = (1 << 31) - 1  # Iris counts retries in 32 bits
_ACCELERATOR_CPU = 4000  # millicores, the least that Iris's own client asks for beside an accelerator
_ANYWHERE = "*"
_ZONE = re.compile(r"[a-z0-9-]+-[a-z]")  # a region's name ends with a digit
_GANG = {"tpu": "tpu-name", "gpu": "leafgroup"}
"""The attribute that workers of one gang have in common."""
_DEFAULTS = ResourceConfig()
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


def check(request: JobRequest, user: str, namespace: str) -> None:
    """Raise InvalidRequestError, with all that does not fit, unless Iris can carry the request out."""
    found = list(_misfits(request, user))
    if request.namespace not in (None, namespace):
        why = f"this client launches in {namespace}; another namespace has a client of its own"
        found.append(FieldError("namespace", why))
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
    yield from _misfits_of_places(request.resources)
    yield from _misfits_of_slices(request)


def _misfits_of_places(resources: ResourceConfig) -> Iterator[FieldError]:
    regions = resources.regions or ()
    zones = [each for each in regions if _ZONE.fullmatch(each)]
    if zones and len(zones) < len(regions):
        yield FieldError("resources.regions", "Iris takes regions or zones, and these are some of each")
    devices = devices_of(resources)
    if len({device.shape for device in devices}) > 1:
        each = ", ".join(f"{d.variant}: {d.hosts} x {d.count}" for d in devices)
        yield FieldError(
            "resources.accelerators",
            f"alternatives on Iris have the number of machines and of chips of each in common, not ({each})",
        )


def _misfits_of_slices(request: JobRequest) -> Iterator[FieldError]:
    devices = devices_of(request.resources)
    if not devices or devices[0].hosts == 1:
        return
    own, tasks = devices[0], tasks_of(request)
    if tasks > own.hosts:
        yield FieldError(
            "resources.replicas",
            "Iris places all tasks of a gang on one slice, and a slice of "
            f"{own.variant} has {own.hosts} hosts, not {tasks}: launch one job for each slice",
        )


def launch_of(request: JobRequest, job_id: str, region: str) -> Body:
    """Return the message of a request that fits, but for its entrypoint, environment and bundle.

    Args:
        request: See `check`.
        job_id: What the job will be called in Iris.
        region: Where the task is that launches it; "": nowhere.
    """
    resources = request.resources
    tasks, devices = tasks_of(request), devices_of(resources)
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
    if tasks > 1 and devices and (devices[0].kind == "gpu" or devices[0].hosts > 1):
        body["coscheduling"] = {"groupBy": _GANG[devices[0].kind]}
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
    devices = devices_of(request.resources)
    return max(request.num_tasks, request.resources.replicas * (devices[0].hosts if devices else 1))


def variables_of(resources: ResourceConfig) -> dict[str, str]:
    """Return defaults of a job's variables for JAX and libtpu, without those that Iris itself sets."""
    devices = devices_of(resources)
    if not devices:
        return {"JAX_PLATFORMS": "cpu"}
    for begin, size in _SCOPED_VMEM:
        if devices[0].variant.startswith(begin):
            return {"LIBTPU_INIT_ARGS": f"--xla_tpu_scoped_vmem_limit_kib={size}"}
    return {}


def _retries(given: int) -> int:
    return _UNLIMITED if given < 0 else given


def _resources(resources: ResourceConfig) -> Body:
    devices = devices_of(resources)
    if not devices:
        return {
            "cpuMillicores": math.ceil(resources.cpu * 1000),
            "memoryBytes": str(parse_size(resources.ram, "resources.ram")),
            "diskBytes": str(parse_size(resources.disk, "resources.disk")),
        }
    own = devices[0]
    body: Body = {
        "cpuMillicores": _ACCELERATOR_CPU,
        "device": {own.kind: {"variant": own.variant, "count": own.count}},
    }
    if own.kind == "gpu":  # of a machine that others may use too
        body["cpuMillicores"] = max(math.ceil(resources.cpu * 1000), _ACCELERATOR_CPU)
        for field, given, default in (
            ("memoryBytes", resources.ram, _DEFAULTS.ram),
            ("diskBytes", resources.disk, _DEFAULTS.disk),
        ):
            if given != default:
                body[field] = str(parse_size(given, f"resources.{field}"))
    return body


def _constraints(resources: ResourceConfig, region: str) -> list[Body]:
    found: list[Body] = []
    if not resources.preemptible:
        found.append(_among("preemptible", ["false"]))
    regions = list(resources.regions or ([region] if region else []))
    if regions and _ANYWHERE not in regions:
        found.append(_among("zone" if _ZONE.fullmatch(regions[0]) else "region", regions))
    variants = [device.variant for device in devices_of(resources)]
    if len(variants) > 1:
        found.append(_among("device-variant", variants))
    return found


def _among(key: str, values: Sequence[str]) -> Body:
    """Return the constraint that an attribute of a worker has one of some values."""
    if len(values) == 1:
        return {"key": key, "op": "CONSTRAINT_OP_EQ", "value": {"stringValue": values[0]}}
    return {"key": key, "op": "CONSTRAINT_OP_IN", "values": [{"stringValue": value} for value in values]}
