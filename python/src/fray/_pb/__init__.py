"""Generated from clusterapi/cluster.proto by scripts/python-generate."""
