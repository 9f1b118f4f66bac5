"""A Ray cluster of this machine alone, for a bench: both libraries are measured on it."""

from __future__ import annotations

import logging
import os

import ray

_SETTINGS = {
    "RAY_AUTH_MODE": "disabled",  # and no token is left in the home directory
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",
    # Of a machine that does other work too.
    "RAY_gcs_server_port_wait_time_s": "300",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_worker_register_timeout_seconds": "300",
}

TRIES = 5  # Ray gives a node 30 s to start, of which there is no setting


def start(cpus: int) -> str:
    """Start it in this process, which is connected then, and return its address."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    for left in reversed(range(TRIES)):
        try:
            ray.init(
                "local",
                num_cpus=cpus,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=80_000_000,
            )
            break
        except Exception:
            ray.shutdown()
            if not left:
                raise
    address: str = ray.get_runtime_context().gcs_address
    return address
