"""Generated from clusterapi/cluster.proto and actorrpc/wire/actor.proto by scripts/python-generate."""
