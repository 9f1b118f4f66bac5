"""The cluster that the environment names."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from fray.cluster.context import scoped_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from fray.cluster.protocols import Cluster


def current_cluster() -> Cluster:
    """Return the cluster that this code is to use.

    In a job of a LocalCluster it is that cluster. Otherwise FRAY_CLUSTER_SPEC names it, or FRAY_CLIENT_SPEC,
    which is what a user sets to run a program elsewhere:

    - "local", or not set: a LocalCluster, the same one for the whole process;
    - "fray://host:port": the fray cluster at that address, see FrayCluster.from_spec;
    - "ray:auto", "ray:host:port" or "ray://host:port": a Ray cluster, see RayCluster.from_spec.

    Jobs have FRAY_CLUSTER_SPEC set for the cluster that they run on, and their namespace in FRAY_NAMESPACE.

    Raises:
        ValueError: FRAY_CLUSTER_SPEC is none of them.
    """
    return scoped_cluster() or cluster_of(spec_of_environment())


def spec_of_environment() -> str:
    """Return FRAY_CLUSTER_SPEC or, where it is not set, FRAY_CLIENT_SPEC; "" where neither is."""
    return os.environ.get("FRAY_CLUSTER_SPEC") or os.environ.get("FRAY_CLIENT_SPEC", "")


@functools.cache
def cluster_of(spec: str) -> Cluster:
    """Return the cluster of a FRAY_CLUSTER_SPEC, always the same for the same one."""
    if spec == "local":
        return cluster_of("")
    if not spec:
        from fray.cluster.local import LocalCluster

        return LocalCluster()
    return import_backend(spec)(spec)


def import_backend(spec: str) -> Callable[[str], Cluster]:
    """Import what a cluster of that FRAY_CLUSTER_SPEC needs, which may be slow, and return what makes it.

    Raises:
        ValueError: the spec names no cluster.
    """
    if spec in ("", "local"):
        import fray.cluster.local  # noqa: F401 - cluster_of needs it

        return cluster_of
    if spec.startswith("local:"):
        from fray.cluster.local.remote import connect

        return connect
    if spec.startswith("fray:"):
        from fray.cluster.remote import FrayCluster

        return FrayCluster.from_spec
    if spec.startswith("iris:"):
        from fray.cluster.iris import IrisCluster

        return IrisCluster.from_spec
    if spec.startswith("ray:"):
        from fray.cluster.ray import RayCluster

        return RayCluster.from_spec
    raise ValueError(
        f'"{spec}" names no cluster; set FRAY_CLUSTER_SPEC to "local", "fray://host:port", '
        '"iris://host:port", "ray:auto", "ray:host:port" or "ray://host:port"'
    )
