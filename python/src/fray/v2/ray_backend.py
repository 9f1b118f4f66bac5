"""A client of a Ray cluster. It is imported only where a spec names one."""

from __future__ import annotations

from fray.cluster.ray import RayCluster
from fray.v2.client import _ClusterClient


class RayClient(_ClusterClient):
    """Submits jobs to a Ray cluster."""

    def __init__(self, spec: str = "ray:auto") -> None:
        """Connect to ray:auto, ray:HOST:PORT or ray://HOST:PORT, see fray.cluster.ray.RayCluster.from_spec.

        Raises:
            ImportError: Ray is not installed.
            ValueError: the spec has another form.
            ClusterError: the cluster cannot be reached, or does not let this program in.
        """
        super().__init__(RayCluster.from_spec(spec))
