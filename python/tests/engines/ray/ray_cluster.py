"""A Ray cluster of several nodes on this machine, in a process of its own: `python ray_cluster.py`.

Commands come on stdin, one a line, as JSON; each is answered with a line of JSON. The cluster ends with
stdin. Tests speak to it through `Nodes`.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


class Nodes:
    """The cluster, for tests."""

    def __init__(self, directory: Path, head: dict[str, Any]) -> None:
        self.token = directory / "token"
        self.token.write_text(secrets.token_hex(32))
        self.environ = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token),
            "RAY_memory_monitor_refresh_ms": "0",
            "RAY_agent_register_timeout_ms": "300000",  # on a loaded machine
            "RAY_raylet_start_wait_time_s": "300",
            "RAY_worker_niceness": "0",  # Ray's 15 starves workers of a busy machine
            "RAY_USAGE_STATS_ENABLED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",  # as in many images
            "RAY_gcs_server_port_wait_time_s": "300",
            "RAY_DISABLE_IMPORT_WARNING": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env={**os.environ, **self.environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(directory / "cluster.log").open("w"),
            text=True,
            start_new_session=True,
        )
        self.address: str = self.ask("start", **head)["address"]

    client: str
    """The address for Ray clients."""

    def ask(self, command: str, **options: Any) -> dict[str, Any]:
        """Have something done, and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": command, "options": options}) + "\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise RuntimeError("the cluster has ended")

    def add(self, **options: Any) -> str:
        """Add a node, and return its id."""
        return str(self.ask("add", **options)["node"])

    def remove(self, node: str, graceful: bool = False) -> None:
        """End a node, as if its machine were lost."""
        self.ask("remove", node=node, graceful=graceful)

    def raylet(self, node: str) -> int:
        """Return the process of a node's raylet."""
        return int(self.ask("raylet", node=node)["pid"])

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(300)


def main() -> None:
    from ray._common.utils import get_default_ray_temp_dir
    from ray.cluster_utils import Cluster

    from engines.ray.starting import be_patient, node_options

    be_patient()
    # Where the address of a cluster is written; only a node without a directory of its own makes it.
    Path(get_default_ray_temp_dir()).mkdir(parents=True, exist_ok=True)
    cluster = Cluster()
    nodes: dict[str, Any] = {}
    directories: list[str] = []
    for line in sys.stdin:
        asked = json.loads(line)
        options = asked["options"]
        answer: dict[str, Any] = {}
        match asked["command"]:
            case "start":
                directory = tempfile.mkdtemp(prefix="r-", dir="/tmp")
                directories.append(directory)
                node = cluster.add_node(
                    include_dashboard=options.pop("include_dashboard", False),
                    temp_dir=directory,
                    **node_options(),
                    **options,
                )
                nodes[node.node_id] = node
                answer = {"address": cluster.address, "directory": directory}
            case "add":
                node = cluster.add_node(**node_options(), **options)
                nodes[node.node_id] = node
                answer = {"node": node.node_id}
            case "remove":
                cluster.remove_node(nodes.pop(options["node"]), allow_graceful=options["graceful"])
            case "raylet":
                node = nodes[options["node"]]
                answer = {"pid": node.all_processes["raylet"][0].process.pid}
        print(json.dumps(answer), flush=True)
    cluster.shutdown()
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
