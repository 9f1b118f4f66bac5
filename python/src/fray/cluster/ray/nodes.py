"""The nodes of the Ray cluster, as its table has them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fray.cluster.ray.records import Place


@dataclass(frozen=True)
class Node:
    """One node."""

    node_id: str
    alive: bool
    address: str = ""
    total: Mapping[str, float] = field(default_factory=dict)
    free: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    death: str = ""
    """Why it is dead, as Ray has it."""


def node_of(entry: Mapping[str, Any], free: Mapping[str, Mapping[str, float]]) -> Node:
    """Return a node from an entry of ray.nodes() and what is free on each."""
    node_id = entry["NodeID"]
    return Node(
        node_id,
        bool(entry["Alive"]),
        entry.get("NodeManagerAddress", ""),
        dict(entry.get("Resources") or {}),
        dict(free.get(node_id, {})),
        dict(entry.get("Labels") or {}),
        entry.get("DeathReasonMessage") or "",
    )


def loss_of(places: Sequence[Place], nodes: Mapping[str, Node]) -> str:
    """Return why an attempt in these places is lost, "" if no node of it is dead.

    A node that the table does not have is in doubt, and counts as alive.
    """
    for place in places:
        node = nodes.get(place.node)
        if node is not None and not node.alive:
            because = f": {node.death}" if node.death else ""
            return f"Ray's node {node.address or node.node_id[:12]} died{because}"
    return ""


class Nodes:
    """The last reading of the table."""

    def __init__(self) -> None:
        self.known: dict[str, Node] = {}
        self._read_at = float("-inf")
        self._lock = asyncio.Lock()

    async def refresh(self, age: float) -> None:
        """Read the table, unless that was done less than `age` seconds ago."""
        async with self._lock:
            if time.monotonic() - self._read_at >= age:
                self.known = await asyncio.to_thread(read)
                self._read_at = time.monotonic()

    def loss(self, places: Sequence[Place]) -> str:
        """Return why an attempt is lost, see `loss_of`."""
        return loss_of(places, self.known)


def read() -> dict[str, Node]:
    """Return the nodes by their ids."""
    import ray
    from ray._private import state

    free = state.available_resources_per_node()
    return {entry["NodeID"]: node_of(entry, free) for entry in ray.nodes()}
