"""Why a job waits: a pure function of what it asks for and of the nodes."""

from __future__ import annotations

from collections.abc import Mapping

from fray.cluster.ray.demand import GPU_TYPE, HEAD_NODE, REGION_LABELS, Demand, demand_of, on_each
from fray.cluster.ray.nodes import Node
from fray.cluster.ray.records import Job

_EPSILON = 1e-6


def reasons(job: Job, nodes: Mapping[str, Node]) -> tuple[str, ...]:
    """Return why a job that is pending has no place, at least one reason."""
    found = list(_reasons(demand_of(job.launch.request), nodes))
    resources = job.launch.request.resources
    if resources.alternatives:  # no node had any of them when it was launched
        found = [
            f"{name}: {why}"
            for name, on in zip(resources.accelerators, on_each(job.launch.request), strict=True)
            for why in _reasons(demand_of(on), nodes)
        ]
    if job.reason:
        found.insert(0, job.reason)
    return tuple(found or ["its worker process on Ray starts"])


def _reasons(demand: Demand, nodes: Mapping[str, Node]) -> list[str]:
    found = lacking(demand, nodes) or taken(demand, nodes)
    return [found] if found else []


def lacking(demand: Demand, nodes: Mapping[str, Node]) -> str:
    """Return why the nodes could not hold a job if they were free, "" if they could, or none is known."""
    alive = [node for node in nodes.values() if node.alive]
    if not alive:
        return ""
    placed = _placed(demand, nodes)
    if not placed:
        have = sorted({region_of(node) for node in alive} - {""})
        known = f"nodes are in {', '.join(have)}" if have else "no node has a label with its region"
        return f"no node is in {' or '.join(demand.regions)}: {known}"
    if demand.tpu and (found := _slices_lacking(demand, placed)):
        return found
    wanted = _wanted(demand)
    for name, amount in wanted.items():
        if all(node.total.get(name, 0) + _EPSILON < amount for node in placed):
            return _nowhere(name, amount, placed)
    able = [node for node in placed if _fits(wanted, node.total)]
    if not able:
        return f"no node has {_text(wanted)} together"
    if demand.tasks > sum(_times(wanted, node.total) for node in able):
        return f"no {demand.tasks} places with {_text(wanted)} each exist on the nodes of the cluster"
    return ""


def taken(demand: Demand, nodes: Mapping[str, Node]) -> str:
    """Return which places that a job could have are in use, "" if enough are free."""
    placed = _placed(demand, nodes)
    if demand.tpu:
        heads = [node for node in placed if node.total.get(demand.head)]
        if sum(node.free.get(demand.head, 0) >= 1 for node in heads) < demand.slices:
            return (
                f"it waits for {demand.slices} of the {len(heads)} slices of type {demand.tpu}: "
                "others use them"
            )
    wanted = _wanted(demand)
    able = [node for node in placed if _fits(wanted, node.total)]
    if not able or sum(_times(wanted, node.free) for node in able) >= demand.tasks:
        return ""
    free = "; ".join(f"{node.address} has {_text(_free(wanted, node))} free" for node in able[:3])
    many = f"{demand.tasks} times " if demand.tasks > 1 else ""
    return f"it waits for {many}{_text(wanted)}: {free}"


def _placed(demand: Demand, nodes: Mapping[str, Node]) -> list[Node]:
    """Return the nodes that live in the regions of a job."""
    return [
        node
        for node in nodes.values()
        if node.alive and (not demand.regions or region_of(node) in demand.regions)
    ]


def _slices_lacking(demand: Demand, nodes: list[Node]) -> str:
    """Return why there are no slices for a job, "" if there are."""
    heads = [node for node in nodes if node.total.get(demand.head)]
    if not heads:
        return f"no node has {demand.head}, which the first host of a {demand.tpu} slice has"
    if len(heads) < demand.slices:
        return f"it needs {demand.slices} slices of type {demand.tpu}, and the cluster has {len(heads)}"
    return ""


def region_of(node: Node) -> str:
    """Return the region that a node's labels name, "" if none does."""
    return next((node.labels[label] for label in REGION_LABELS if node.labels.get(label)), "")


def _wanted(demand: Demand) -> dict[str, float]:
    wanted = demand.bundle.wanted()
    if demand.tpu and demand.hosts == 1:
        wanted[demand.head] = 1.0
    return wanted


def _nowhere(name: str, amount: float, nodes: list[Node]) -> str:
    most = max(node.total.get(name, 0) for node in nodes)
    if name == HEAD_NODE:
        return (
            f"no node has the resource {HEAD_NODE}, to which preemptible=False pins: start one that is not "
            f"preempted with --resources='{{\"{HEAD_NODE}\": 1}}'"
        )
    largest = f"; the largest has {_amount(name, most)}" if most else ""
    return f"no node has {_amount(name, amount)}{largest}"


def _fits(wanted: Mapping[str, float], amounts: Mapping[str, float]) -> bool:
    return all(amounts.get(name, 0) + _EPSILON >= amount for name, amount in wanted.items())


def _times(wanted: Mapping[str, float], amounts: Mapping[str, float]) -> int:
    if not wanted:
        return 1 << 30
    return min(int((amounts.get(name, 0) + _EPSILON) / amount) for name, amount in wanted.items())


def _free(wanted: Mapping[str, float], node: Node) -> dict[str, float]:
    return {name: node.free.get(name, 0) for name in wanted}


def _text(wanted: Mapping[str, float]) -> str:
    return " and ".join(_amount(name, amount) for name, amount in wanted.items())


def _amount(name: str, amount: float) -> str:
    if name == "memory":
        return f"{amount / (1 << 20):.0f} MiB of memory"
    if name.startswith(GPU_TYPE):
        return f"{'' if amount else 'no '}GPUs of type {name.removeprefix(GPU_TYPE)}"
    return f"{amount:g} {name}"
