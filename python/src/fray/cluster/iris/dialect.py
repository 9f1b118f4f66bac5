"""What differs on the wire between the releases of Iris that are spoken.

June 2026 has the endpoints among the controller's own calls, without leases, and the set-up commands in the
entrypoint. Since then they are a service of their own with leases, set-up scripts belong to the environment,
and the failures of all tasks of a job are counted together.
"""

from __future__ import annotations

from dataclasses import dataclass

CONTROLLER = "/iris.cluster.ControllerService"
_ENDPOINTS = "/iris.cluster.EndpointService"
_LOGS = "/finelog.logging.LogService"


@dataclass(frozen=True)
class Dialect:
    """Where calls go, and which fields there are."""

    endpoints: str
    logs: str
    leases: bool
    """Endpoints expire unless they are renewed."""
    scripts: bool
    """Set-up scripts are in the environment, and Iris counts the failures of a job."""
    wants_date: bool
    """A root job without a recent date of its client is rejected."""


OCTOBER = Dialect(
    endpoints=_ENDPOINTS,
    logs=f"/proxy/system.log-server{_LOGS}",
    leases=True,
    scripts=True,
    wants_date=False,
)
JUNE = Dialect(endpoints=CONTROLLER, logs=_LOGS, leases=False, scripts=False, wants_date=True)
