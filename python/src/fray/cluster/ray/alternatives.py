"""Alternative accelerators on Ray: a job has the first that nodes have when it is launched. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fray.cluster.ray.demand import demand_of, on_each
from fray.cluster.ray.nodes import Node
from fray.cluster.ray.pending import lacking
from fray.cluster.ray.records import Launch
from fray.cluster.types import Choice, ChoiceReason, PassedAlternative


def settled(launch: Launch, nodes: Mapping[str, Node]) -> Launch:
    """Return a launch on the first of its alternatives that nodes have; unchanged where none has any."""
    request = launch.request
    names = request.resources.accelerators
    passed: list[PassedAlternative] = []
    if not names:
        return launch
    for name, on in zip(names, on_each(request), strict=True):
        why = lacking(demand_of(on), nodes)
        if not why:
            reason = ChoiceReason.BLOCKED if passed else ChoiceReason.FIRST
            choice = Choice(name, reason, tuple(passed))
            return replace(launch, request=on, accelerators=tuple(names), choice=choice)
        passed.append(PassedAlternative(name, "nowhere", why))
    return replace(launch, accelerators=tuple(names))
