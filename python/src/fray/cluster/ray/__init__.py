"""Jobs on a Ray cluster: FRAY_CLUSTER_SPEC=ray:auto, ray:HOST:PORT or ray://HOST:PORT. Start with RayCluster.

A client calls the registry of its namespace (`registry`), a detached Ray actor that knows all jobs. Each job
has a supervisor (`supervisor`), which runs its programs as child processes (`task`, `process`, `shim`). What
decides is pure: `job_table` and `transitions` (attempts and budgets), `demand` (resources), `pending` (why a
job waits), `nodes` (which nodes are lost). Ray is imported when a client connects, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fray.cluster.ray.cluster import RayCluster

__all__ = ["RayCluster"]


def __getattr__(name: str) -> Any:
    # Workers that host one part import no others.
    if name == "RayCluster":
        from fray.cluster.ray.cluster import RayCluster

        return RayCluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
