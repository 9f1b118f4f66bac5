"""A cluster that is this machine. Start with LocalCluster.

Jobs are threads or processes of the current environment. There is no server and nothing is shipped:
resources, regions, images, extras and health checks have no effect here.
"""

from fray.cluster.local.cluster import LocalCluster

__all__ = ["LocalCluster"]
