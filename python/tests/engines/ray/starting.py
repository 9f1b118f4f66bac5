"""Nodes of Ray clusters of tests start on a busy machine too, for `ray_cluster` and for Go's raytest."""

from __future__ import annotations

import contextlib
import inspect
import socket
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 900  # seconds that a node may take to start; Ray itself waits for 30, which a busy machine exceeds
MEMORY = 80_000_000  # bytes of each node's object store

_AGENT_PORTS = (
    "metrics_agent_port",
    "metrics_export_port",
    "dashboard_agent_listen_port",
    "runtime_env_agent_port",
)


def be_patient() -> None:
    """Have Ray wait in this process until nodes have started."""
    from ray._private import services
    from ray.cluster_utils import Cluster

    services.get_node = _patient(services.get_node)
    services.start_raylet = _unhurried(services.start_raylet)
    Cluster._wait_for_node.__defaults__ = (PATIENCE,)


def node_options() -> dict[str, int]:
    """Return what each node is started with: the size of its store, and free ports for its agents."""
    with contextlib.ExitStack() as chosen:
        sockets = {name: chosen.enter_context(socket.create_server(("", 0))) for name in _AGENT_PORTS}
        ports = {name: each.getsockname()[1] for name, each in sockets.items()}
    return {"object_store_memory": MEMORY, **ports}


def _unhurried(start: Callable[..., Any]) -> Callable[..., Any]:
    """Return what starts a raylet that finds its agents' ports in their files at once.

    The agents write these files when they listen. A raylet aborts where that takes 30 s, which no setting
    changes and a busy machine exceeds.
    """
    from ray._raylet import persist_port

    signature = inspect.signature(start)

    def call(*args: Any, **options: Any) -> Any:
        given = signature.bind(*args, **options).arguments
        for name in _AGENT_PORTS:
            persist_port(given["session_dir"], given["node_id"], name, given[name])
        return start(*args, **options)

    return call


def _patient(read: Callable[..., Any]) -> Callable[..., Any]:
    """Return what repeats a reading of the nodes until the node is among them."""

    def call(*args: Any, **options: Any) -> Any:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return read(*args, **options)
            except RuntimeError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    return call
