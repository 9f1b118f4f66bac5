"""The places of a gang: placement groups of Ray with one bundle for each task.

A slice of several hosts is reserved in two steps: a group of its head's resource alone decides which slice it
is, and the second takes all hosts of that. Groups have names, so that a later process can remove them.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fray.cluster.ray.demand import SLICE_LABEL, WORKER_LABEL, Demand, region_selector
from fray.cluster.ray.nodes import Node, read
from fray.cluster.ray.records import Shared
from fray.cluster.types import JobId

_log = logging.getLogger("fray")
_LOOK = 0.5  # seconds between two questions whether the gang is still wanted


@dataclass(frozen=True)
class Bundled:
    """The place of one task, before it runs."""

    bundle: int
    slice: str = ""
    host: int = 0


def names_of(job_id: JobId, demand: Demand) -> list[str]:
    """Return the names of the groups that a job may have."""
    heads = range(demand.slices if demand.hosts > 1 else 0)
    return [f"fray-job {job_id}", *(f"fray-job {job_id} slice {k}" for k in heads)]


def remove(ray: Any, names: Sequence[str]) -> bool:
    """Remove groups by their names, those that there are; False: Ray could not be asked about all."""
    asked = True
    for name in names:
        try:
            ray.util.remove_placement_group(ray.util.get_placement_group(name))
        except ValueError:
            continue  # there is none
        except Exception as err:
            _log.warning("the placement group %s is not removed yet: %r", name, err)
            asked = False
    return asked


class Places:
    """The groups of one job."""

    def __init__(self, ray: Any, job_id: JobId, demand: Demand) -> None:
        self._ray, self._demand = ray, demand
        self._names = names_of(job_id, demand)
        self.group: Any = None

    def reserve(self, wanted: Callable[[], bool]) -> list[Bundled] | None:
        """Wait for places, and return them in the order of the tasks; None: they are not wanted any more."""
        remove(self._ray, self._names)  # of an earlier supervisor
        demand = self._demand
        if demand.hosts == 1:
            # A gang is lost as a whole, so it is kept together where a slice has one host.
            self.group = self._make(self._names[0], [_bundle(demand)] * demand.tasks, "PACK")
            if not self._ready(self.group, wanted):
                return None
            nodes = read()
            return [
                Bundled(i, nodes[node].labels.get(SLICE_LABEL, "") or (f"slice-{i}" if demand.tpu else ""))
                for i, node in self._nodes(self.group).items()
            ]
        slices = []
        for name in self._names[1:]:
            head = self._make(name, [{demand.head: 1.0}], "PACK")
            if not self._ready(head, wanted):
                return None
            slices.append(_slice_of(read()[self._nodes(head)[0]], demand))
        return self._reserve_hosts(slices, wanted)

    def _reserve_hosts(self, slices: list[str], wanted: Callable[[], bool]) -> list[Bundled] | None:
        nodes = read()
        bundles, selectors = [], []
        for name in slices:
            named = any(name in node.total for node in nodes.values() if node.alive)
            bundles += [
                {**self._demand.bundle.wanted(), **({name: 1.0} if named else {})}
            ] * self._demand.hosts
            selectors += [{} if named else {SLICE_LABEL: name}] * self._demand.hosts
        self.group = self._make(self._names[0], bundles, "STRICT_SPREAD", selectors)
        if not self._ready(self.group, wanted):
            return None
        of_bundle = self._nodes(self.group)
        found = []
        for k, name in enumerate(slices):
            mine = range(k * self._demand.hosts, (k + 1) * self._demand.hosts)
            ordered = sorted(mine, key=lambda b: _worker(nodes.get(of_bundle[b]), b))
            found += [Bundled(b, name, host) for host, b in enumerate(ordered)]
        return found

    def _make(
        self,
        name: str,
        bundles: list[dict[str, float]],
        strategy: str,
        selectors: list[dict[str, str]] | None = None,
    ) -> Any:
        selector = region_selector(self._demand.regions, read()) if self._demand.regions else {}
        options: dict[str, Any] = {}
        if selector or any(selectors or []):
            options["bundle_label_selector"] = [
                {**selector, **own} for own in selectors or [{}] * len(bundles)
            ]
        return self._ray.util.placement_group(
            bundles, strategy=strategy, name=name, lifetime="detached", **options
        )

    def _ready(self, group: Any, wanted: Callable[[], bool]) -> bool:
        while wanted():
            if group.wait(_LOOK):
                return True
        return False

    def _nodes(self, group: Any) -> dict[int, str]:
        table = self._ray.util.placement_group_table(group)
        return dict(sorted(table["bundles_to_node_id"].items()))

    def release(self) -> None:
        """Give them up."""
        remove(self._ray, self._names)
        self.group = None


def make_shared(ray: Any, name: str, demands: Sequence[Demand]) -> None:
    """Make the group whose places several jobs have, unless there is one of that name.

    The jobs start when all places are there, and it is removed when all of them have ended.
    """
    with contextlib.suppress(ValueError):
        ray.util.get_placement_group(name)
        return
    bundles = [_bundle(demand) for demand in demands for _ in range(demand.tasks)]
    regions = {demand.regions for demand in demands if demand.regions}
    options: dict[str, Any] = {}
    if regions:
        nodes = read()
        options["bundle_label_selector"] = [
            region_selector(demand.regions, nodes) if demand.regions else {}
            for demand in demands
            for _ in range(demand.tasks)
        ]
    ray.util.placement_group(bundles, strategy="PACK", name=name, lifetime="detached", **options)


def _bundle(demand: Demand) -> dict[str, float]:
    """Return what a task takes that has a host, or a slice, of its own."""
    return {**demand.bundle.wanted(), **({demand.head: 1.0} if demand.tpu else {})}


class SharedPlaces:
    """The places of one job in a group that `make_shared` made."""

    def __init__(self, ray: Any, shared: Shared, demand: Demand) -> None:
        self._ray, self._shared, self._demand = ray, shared, demand
        self.group: Any = None

    def reserve(self, wanted: Callable[[], bool]) -> list[Bundled] | None:
        """Wait for the places of all, see Places.reserve."""
        while wanted():
            try:
                self.group = self._ray.util.get_placement_group(self._shared.name)
            except ValueError:  # the registry has not made it yet
                time.sleep(_LOOK)
                continue
            if self.group.wait(_LOOK):
                first = self._shared.first
                return [
                    Bundled(first + i, f"slice-{i}" if self._demand.tpu else "")
                    for i in range(self._demand.tasks)
                ]
        return None

    def release(self) -> None:
        """Leave the places to the others of the group, until all have ended."""
        self.group = None


def _slice_of(node: Node, demand: Demand) -> str:
    """Return the name of the slice whose head a node is."""
    if node.labels.get(SLICE_LABEL):
        return node.labels[SLICE_LABEL]
    own = [
        name
        for name in node.total
        if name not in ("CPU", "GPU", "TPU", "memory", "object_store_memory", demand.head, "head_node")
        and not name.startswith(("node:", "accelerator_type:", "TPU-"))
    ]
    return own[0] if len(own) == 1 else node.node_id


def _worker(node: Node | None, bundle: int) -> tuple[int, int]:
    number = node.labels.get(WORKER_LABEL, "") if node is not None else ""
    return (int(number) if number.isdecimal() else bundle, bundle)
