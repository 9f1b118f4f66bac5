"""The names of fray's Ray actors, which have what their objects are made with: pure."""

from __future__ import annotations

from fray.cluster.types import JobId

REGISTRY = "fray-registry"
_SUPERVISOR, _HOST = "fray-job ", "fray-actor "


def supervisor_name(job_id: JobId) -> str:
    """Return the name of a job's supervisor."""
    return f"{_SUPERVISOR}{job_id}"


def supervised(name: str) -> JobId:
    """Return the job whose supervisor has a name."""
    return JobId(name.removeprefix(_SUPERVISOR))


def host_name(job_id: JobId, attempt: int) -> str:
    """Return the name of the host of an attempt at an actor."""
    return f"{_HOST}{job_id} {attempt}"


def hosted(name: str) -> tuple[JobId, int] | None:
    """Return the job and the attempt whose host has a name; None: it is of no host."""
    if not name.startswith(_HOST):
        return None
    job_id, _, attempt = name.removeprefix(_HOST).rpartition(" ")
    return JobId(job_id), int(attempt)
