"""Alternative accelerators on Ray: which of them a job has is decided when it is launched. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fray.cluster.ray.demand import demand_of, on_each
from fray.cluster.ray.nodes import Node
from fray.cluster.ray.pending import lacking, taken
from fray.cluster.ray.records import Launch
from fray.cluster.types import Choice, ChoiceReason, JobRequest, PassedAlternative


def settled(launch: Launch, nodes: Mapping[str, Node]) -> Launch:
    """Return a launch on one of its alternatives; unchanged where nodes have none of them.

    That is the first of which enough is free, or else the first that nodes have at all.
    """
    names = launch.request.resources.accelerators
    if not names:
        return launch
    free: list[tuple[str, JobRequest]] = []
    able: list[tuple[str, JobRequest]] = []
    passed: dict[str, PassedAlternative] = {}
    for name, on in zip(names, on_each(launch.request), strict=True):
        demand = demand_of(on)
        if why := lacking(demand, nodes):
            passed[name] = PassedAlternative(name, "nowhere", why)
            continue
        able.append((name, on))
        if why := taken(demand, nodes):
            passed[name] = PassedAlternative(name, "capacity", why)
        else:
            free.append((name, on))
    if not able:
        return replace(launch, accelerators=tuple(names))
    name, on = (free or able)[0]
    before = tuple(passed[each] for each in names[: names.index(name)])
    choice = Choice(name, ChoiceReason.BLOCKED if before else ChoiceReason.FIRST, before)
    return replace(launch, request=on, accelerators=tuple(names), choice=choice)
