"""What is known of actors that are not registered, by the jobs that host them, or did."""

from __future__ import annotations

import json
from collections.abc import Iterable

from fray.cluster.local.metadata import death_of
from fray.cluster.ray.actors.endpoint_registry import Fate
from fray.cluster.ray.records import Job
from fray.cluster.types import TerminationCause


def names_of(job: Job) -> tuple[str, ...]:
    """Return the names of the actor that a job was launched to host; none: it was not."""
    text = job.launch.environment.variables.get("FRAY_ACTOR_NAMES", "")
    return tuple(json.loads(text)) if text else ()


def fate_of(name: str, jobs: Iterable[Job]) -> Fate:
    """Return what is known of an actor by the jobs that host it: it is dead once all of them have ended."""
    hosts = list(jobs)
    if not hosts or not all(job.status.ended for job in hosts):
        return Fate()
    last = max(hosts, key=lambda job: job.ended_at or 0.0)
    return Fate(death_of(name, last.job_id, last.status, _unmade(last) or last.reason))


def _unmade(job: Job) -> str:
    """Return what the constructor raised, "" if that is not why a job failed."""
    end = job.attempts[-1].termination if job.attempts else None
    if end is None or end.cause is not TerminationCause.ACTOR_UNMADE or not end.type:
        return ""
    return f"its constructor raised {end.type}: {end.message}"
