"""A fray cluster, over gRPC. Start with FrayCluster."""

from fray.cluster.remote.cluster import FrayCluster

__all__ = ["FrayCluster"]
