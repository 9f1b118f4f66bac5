"""What a request can be seen to say wrong before any cluster is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fray.cluster.errors import FieldError, InvalidRequestError
from fray.cluster.resources import ResourceConfig, parse_size
from fray.cluster.types import JobGroupConfig, JobRequest, ReservationConfig

_NAME = re.compile(r"(?=.{1,200}\Z)\w(?:[\w./-]*\w)?", re.ASCII)
_NAME_RULE = (
    "is no name: use letters, digits and . _ - /, beginning and ending with a letter, a digit or an "
    "underscore, at most 200 in all"
)


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
    _refuse(found)


def _refuse(found: Sequence[FieldError]) -> None:
    if found:
        raise InvalidRequestError("the request is refused", found)


def _of_request(request: JobRequest) -> Iterator[FieldError]:
    if not _NAME.fullmatch(request.name):
        yield FieldError("name", f'"{request.name}" {_NAME_RULE}')
    yield from _of_resources(request.resources, "resources", fewest=1)
    if request.num_tasks < 1:
        yield FieldError("num_tasks", f"{request.num_tasks} is too few: a job has at least one task")
    for name in ("max_retries_failure", "max_retries_preemption"):
        if getattr(request, name) < -1:
            yield FieldError(name, f"{getattr(request, name)} must be -1, for no end, or more")
    for name in ("timeout_seconds", "scheduling_timeout_seconds", "stop_grace_seconds"):
        seconds = getattr(request, name)
        if seconds is not None and seconds <= 0:
            yield FieldError(name, f"{seconds} s is no time")


def _of_resources(resources: ResourceConfig, path: str, fewest: int) -> Iterator[FieldError]:
    if resources.replicas < fewest:
        yield FieldError(f"{path}.replicas", f"{resources.replicas} is too few: {fewest} is the least")
    if resources.cpu <= 0:
        yield FieldError(f"{path}.cpu", f"{resources.cpu} cores are too few")
    for name in ("ram", "disk"):
        try:
            parse_size(getattr(resources, name), f"{path}.{name}")
        except InvalidRequestError as err:
            yield from err.fields
