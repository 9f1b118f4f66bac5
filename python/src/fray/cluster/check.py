"""Checks of requests that need no cluster."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fray.cluster.errors import FieldError, InvalidRequestError
from fray.cluster.gpus import ANY_GPU, canonical_gpu, gpu_types
from fray.cluster.resources import CpuConfig, GpuConfig, ResourceConfig, TpuConfig, parse_size
from fray.cluster.types import HealthCheck, JobGroupConfig, JobRequest, ReservationConfig

_NAME = re.compile(r"(?=.{1,200}\Z)\w(?:[\w./-]*\w)?", re.ASCII)
_NAME_RULE = (
    "is no name: use letters, digits and . _ - /, beginning and ending with a letter, a digit or an "
    "underscore, at most 200 in all"
)
_KIND_RULE = 'has "job" between its points, which is how addresses name the kind: choose another word'
_PORT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MOST = 100_000
_MOST_GPUS = 64


def check_request(request: JobRequest) -> None:
    """Raise InvalidRequestError, with all mistakes, unless the request may be sent."""
    _refuse(list(_of_request(request)))


def check_group(requests: Sequence[JobRequest], group: JobGroupConfig) -> None:
    """Raise InvalidRequestError, with all mistakes, unless the group may be sent."""
    found = []
    if not _NAME.fullmatch(group.name):
        found.append(FieldError("group.name", f'"{group.name}" {_NAME_RULE}'))
    if not requests:
        found.append(FieldError("requests", "a group has at least one job"))
    seen: dict[str, int] = {}
    for i, request in enumerate(requests):
        found += [FieldError(f"requests[{i}].{e.field}", e.message) for e in _of_request(request)]
        if seen.setdefault(request.name, i) != i:
            message = f'requests[{seen[request.name]}] is called "{request.name}" too'
            found.append(FieldError(f"requests[{i}].name", message))
    _refuse(found)


def check_reservation(config: ReservationConfig) -> None:
    """Raise InvalidRequestError, with all mistakes, unless the reservation may be sent."""
    least, most = config.min_resources, config.max_resources
    found = list(_of_resources(least, "min_resources", fewest=0))
    found += _of_resources(most, "max_resources", fewest=1)
    if not found and least.with_replicas(1) != most.with_replicas(1):
        found.append(
            FieldError("max_resources", "it has another shape than min_resources; only replicas may differ")
        )
    if least.replicas > most.replicas:
        message = f"{most.replicas} replicas are fewer than the {least.replicas} of min_resources"
        found.append(FieldError("max_resources.replicas", message))
    if config.ttl_seconds <= 0:
        found.append(FieldError("ttl_seconds", f"{config.ttl_seconds} s is no time to live"))
    if least.alternatives or most.alternatives:
        found.append(
            FieldError(
                "max_resources.alternatives", "all slices of a reservation are alike: name one accelerator"
            )
        )
    _refuse(found)


def _refuse(found: Sequence[FieldError]) -> None:
    if found:
        raise InvalidRequestError("the request is invalid", found)


def name_problem(name: str) -> str:
    """Return why jobs and actors cannot have a name, "" if they can."""
    if not _NAME.fullmatch(name) or "//" in name:
        return f'"{name}" {_NAME_RULE}'
    return f'"{name}" {_KIND_RULE}' if "job" in name.split(".") else ""


def _of_request(request: JobRequest) -> Iterator[FieldError]:
    if problem := name_problem(request.name):
        yield FieldError("name", problem)
    yield from _of_resources(request.resources, "resources", fewest=1)
    if request.reservation_id is not None and request.resources.alternatives:
        yield FieldError(
            "resources.alternatives",
            "the slices are those of the reservation, so there are none: leave it out",
        )
    yield from _of_tasks(request)
    yield from _of_ports(request.ports)
    yield from _of_variables(request)
    if request.health_check is not None:
        yield from _of_health_check(request.health_check, request.ports)
    for name in ("max_retries_failure", "max_retries_preemption"):
        if getattr(request, name) < -1:
            yield FieldError(name, f"{getattr(request, name)} must be -1, for no end, or more")
    for name in ("timeout_seconds", "scheduling_timeout_seconds", "stop_grace_seconds"):
        seconds = getattr(request, name)
        if seconds is not None and seconds <= 0:
            yield FieldError(name, f"{seconds} s is no time")


def _of_tasks(request: JobRequest) -> Iterator[FieldError]:
    resources, tasks = request.resources, request.num_tasks
    if tasks < 1:
        yield FieldError("num_tasks", f"{tasks} is too few: a job has at least one task")
    if tasks > _MOST:
        yield FieldError("num_tasks", f"{tasks} is too many: {_MOST} is the most")
    hosts = tpu_types().get(canonical_tpu(resources.tpu), 1)
    if tasks <= 1:
        return
    for device in resources.alternatives:
        other = tpu_types().get(canonical_tpu(device.type), 1) if isinstance(device, TpuConfig) else 1
        if other != hosts:
            message = "the alternatives have different numbers of hosts, so a number of tasks suits only some"
            yield FieldError(
                "num_tasks",
                f"{message} of them ({resources.accelerators[0]} {hosts}, {device.type} {other}): leave it "
                "out, and state replicas",
            )
            return
    if tasks % hosts:
        message = (
            f"each host of a slice runs one task, and {resources.tpu} has {hosts} hosts: want a multiple"
        )
        yield FieldError("num_tasks", f"{message} of {hosts}, this is {tasks}")
    elif resources.replicas > 1 and tasks != resources.replicas * hosts:
        message = f"{resources.replicas} slices have {resources.replicas * hosts} hosts, this is {tasks}"
        yield FieldError("num_tasks", f"{message}: leave one of the two out")


def _of_ports(ports: Sequence[str]) -> Iterator[FieldError]:
    for i, name in enumerate(ports):
        if not _PORT.fullmatch(name):
            message = f'"{name}" cannot name a port: a name is a letter or underscore, then letters, digits,'
            yield FieldError("ports", f"{message} underscores and hyphens")
        elif name in ports[:i]:
            yield FieldError("ports", f'the port "{name}" is there twice')


def _of_variables(request: JobRequest) -> Iterator[FieldError]:
    for name, value in (request.environment.env_vars if request.environment else {}).items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            message = f'"{name}" cannot be a variable: a name has no "=", and neither it nor its value a null'
            yield FieldError("environment.env_vars", f"{message} byte")


def _of_health_check(check: HealthCheck, ports: Sequence[str]) -> Iterator[FieldError]:
    if sum((bool(check.http), check.tcp, bool(check.exec))) != 1:
        yield FieldError("health_check", "give exactly one of http, tcp and exec")
    elif not check.exec:
        if check.http and not check.http.startswith("/"):
            yield FieldError("health_check.http", f'"{check.http}" is no path: it begins with a slash')
        if check.port and check.port not in ports:
            yield FieldError("health_check.port", f'the job has no port "{check.port}"')
        elif not check.port and len(ports) != 1:
            yield FieldError("health_check.port", f"name one of the job's {len(ports)} ports")
    if check.threshold < 0:
        yield FieldError("health_check.threshold", f"{check.threshold} must be at least 1, or 0 for 3")
    for name in ("interval_seconds", "timeout_seconds"):
        if getattr(check, name) <= 0:
            yield FieldError(f"health_check.{name}", f"{getattr(check, name)} s is no time")


@functools.cache
def tpu_types() -> Mapping[str, int]:
    """Return the TPU types that there are, and how many hosts a slice of each has.

    The table is written from that of the configuration language, by the tests of package schema.
    """
    text = Path(__file__).with_name("tpu_types.txt").read_text()
    return {kind: int(hosts) for kind, hosts in (line.split() for line in text.splitlines())}


def canonical_tpu(tpu: str) -> str:
    """Return the name of a TPU type in the table of types."""
    return "v5litepod" + tpu.removeprefix("v5e") if tpu.startswith("v5e-") else tpu


def _of_tpu(tpu: str, path: str) -> Iterator[FieldError]:
    kinds = tpu_types()
    if tpu and canonical_tpu(tpu) not in kinds:
        import difflib  # rarely needed

        near = difflib.get_close_matches(tpu, kinds, 2)
        meant = (
            f"did you mean {' or '.join(near)}?" if near else 'write GENERATION-SIZE, such as "v5litepod-16"'
        )
        yield FieldError(f"{path}.tpu", f'there is no TPU type "{tpu}"; {meant}')


def _of_gpu(gpu: GpuConfig | None, path: str) -> Iterator[FieldError]:
    if gpu is None:
        return
    if gpu.type != ANY_GPU and not canonical_gpu(gpu.type):
        import difflib  # rarely needed

        near = difflib.get_close_matches(gpu.type.lower(), gpu_types(), 2)
        meant = f"did you mean {' or '.join(near)}?" if near else f"the types are {', '.join(gpu_types())}"
        yield FieldError(f"{path}.gpu.type", f'there is no GPU type "{gpu.type}"; {meant}')
    if not 1 <= gpu.count <= _MOST_GPUS:
        yield FieldError(
            f"{path}.gpu.count", f"{gpu.count} is no number of GPUs of a machine: want 1 to {_MOST_GPUS}"
        )


def _of_resources(resources: ResourceConfig, path: str, fewest: int) -> Iterator[FieldError]:
    if resources.replicas < fewest:
        yield FieldError(f"{path}.replicas", f"{resources.replicas} is too few: {fewest} is the least")
    if resources.replicas > _MOST:
        yield FieldError(f"{path}.replicas", f"{resources.replicas} is too many: {_MOST} is the most")
    yield from _of_tpu(resources.tpu, path)
    yield from _of_gpu(resources.gpu, path)
    for i, device in enumerate(resources.alternatives):
        at = f"{path}.alternatives[{i}]"
        if isinstance(device, TpuConfig):
            yield from _of_tpu(device.type, at)
        else:
            yield from _of_gpu(device, at)
    if resources.alternatives and isinstance(resources.device, CpuConfig):
        yield FieldError(f"{path}.alternatives", "the device before them must be a TPU or GPUs")
    if not resources.cpu > 0 or math.isinf(resources.cpu):
        yield FieldError(f"{path}.cpu", f"{resources.cpu} is no number of cores: want more than 0")
    for name in ("ram", "disk"):
        try:
            parse_size(getattr(resources, name), f"{path}.{name}")
        except InvalidRequestError as err:
            yield from err.fields
