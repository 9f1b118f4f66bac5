"""Which of a job's accelerators a Ray cluster gives it: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fray.cluster.ray.demand import demand_for
from fray.cluster.ray.nodes import Node
from fray.cluster.ray.pending import lacking, taken
from fray.cluster.resources import DeviceConfig, ResourceConfig


def chosen(resources: ResourceConfig, num_tasks: int, nodes: Mapping[str, Node]) -> ResourceConfig:
    """Return resources without alternatives, of the accelerator that is to be had.

    That is the first of which enough is free now, or else the first that the nodes have at all, or else the
    first.
    """
    kinds = [replace(resources, device=each, alternatives=()) for each in _devices(resources)]
    demands = [(kind, demand_for(kind, num_tasks)) for kind in kinds]
    able = [(kind, demand) for kind, demand in demands if not lacking(demand, nodes)]
    free = [kind for kind, demand in able if not taken(demand, nodes)]
    return [*free, *(kind for kind, _ in able), *kinds][0]


def _devices(resources: ResourceConfig) -> list[DeviceConfig]:
    return [resources.device, *resources.alternatives]
