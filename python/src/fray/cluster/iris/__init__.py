"""An Iris cluster, over its Connect wire: unary POST with JSON. Start with IrisCluster.

Requests become Iris's messages in `request`, its answers become fray's types in `answer`; `connection` calls,
`dialect` knows what differs between releases, `ship` makes bundles, and `task` is what runs in Iris's tasks.
"""

from fray.cluster.iris.cluster import IrisCluster

__all__ = ["IrisCluster"]
