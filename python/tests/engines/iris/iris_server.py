"""A real Iris in one process: controller, autoscaler and workers, as its own tests run it.

It is started with a Python that has marin-iris, and needs nothing of fray. Its first line of output is a JSON
object with the address and the version. It reads commands from its input, one JSON object a line, and answers
each with one: {"op": "restart"} is another controller with the same database and port, {"op": "preempt",
"task": NAME} takes a task its place, and {"op": "leases", "seconds": N} makes leases of endpoints that short.
The end of the input ends it.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

GIB = 1024**3


def _group(name: str, **rest: Any) -> dict[str, Any]:
    resources = {
        "cpu_millicores": 16000,
        "memory_bytes": 64 * GIB,
        "disk_bytes": 500 * GIB,
        **rest.pop("resources"),
    }
    return {"name": name, "num_vms": 1, "buffer_slices": 0, "max_slices": 2, "resources": resources, **rest}


GROUPS = [
    _group("cpu", buffer_slices=2, resources={"device_type": "CPU", "capacity_type": "ON_DEMAND"}),
    _group(
        "v4-16",
        num_vms=2,
        buffer_slices=1,
        resources={
            "device_type": "TPU",
            "device_variant": "v4-16",
            "device_count": 4,
            "capacity_type": "PREEMPTIBLE",
        },
    ),
]


def _june(port: int, state: Path) -> Any:
    from iris.cluster.backends.local.cluster import LocalCluster
    from iris.cluster.config import make_local_config
    from iris.rpc import config_pb2 as pb

    config = pb.IrisClusterConfig()
    for group in GROUPS:
        given = dict(group["resources"])
        given["device_type"] = getattr(pb, "ACCELERATOR_TYPE_" + given["device_type"])
        given["capacity_type"] = getattr(pb, "CAPACITY_TYPE_" + given["capacity_type"])
        rest = {key: value for key, value in group.items() if key != "resources"}
        message = pb.ScaleGroupConfig(**rest, resources=pb.ScaleGroupResources(**given))
        message.slice_template.num_vms = group["num_vms"]
        message.slice_template.local.SetInParent()
        if "device_variant" in given:  # by which workers are given the name of their slice
            message.slice_template.accelerator_type = given["device_type"]
            message.slice_template.accelerator_variant = given["device_variant"]
        config.scale_groups[group["name"]].CopyFrom(message)
    config = make_local_config(config)
    config.controller.local.port = port
    config.storage.remote_state_dir = f"file://{state}"
    return LocalCluster(config)


def _october(port: int, state: Path) -> Any:
    from iris.cluster import config as c
    from iris.cluster.local_cluster import LocalCluster
    from iris.cluster.types import AcceleratorType, CapacityType

    groups = {}
    for group in GROUPS:
        given = dict(group["resources"])
        given["device_type"] = AcceleratorType[given["device_type"]]
        given["capacity_type"] = CapacityType[given["capacity_type"]]
        template = c.SliceConfig(num_vms=group["num_vms"], local=c.LocalSliceConfig())
        rest = {key: value for key, value in group.items() if key != "resources"}
        groups[group["name"]] = c.ScaleGroupConfig(
            **rest, resources=c.ScaleGroupResources(**given), slice_template=template
        )
    config = c.make_local_config(c.IrisClusterConfig(scale_groups=groups))
    config.controller.local.port = port
    config.storage.remote_state_dir = f"file://{state}"
    return LocalCluster(config)


class Commands:
    """What the test asks for."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    def restart(self) -> str:
        return str(self._cluster.restart())

    def preempt(self, task: str) -> None:
        """Do what the scheduler does with the victim of a job of a higher band."""
        from iris.cluster.controller.reconcile.task import TerminalDecision, TerminalKind
        from iris.cluster.types import JobName

        decision = TerminalDecision(
            kind=TerminalKind.PREEMPT, task_id=JobName.from_wire(task), reason="Preempted by a test"
        )
        self._cluster._controller._apply_preemptions([decision])

    def leases(self, seconds: float) -> None:
        from iris.cluster.controller import endpoints
        from rigging.timing import Duration

        endpoints.MIN_ENDPOINT_LEASE = Duration.from_seconds(seconds)

    def deadline(self, name: str) -> list[int]:
        """Return when the leases of the endpoints of a name are over, in milliseconds of Unix time."""
        from iris.cluster.controller.projections.endpoints import EndpointsProjection

        rows = self._cluster._controller._db.caches[EndpointsProjection].all()
        return [row.lease_deadline.epoch_ms() for row in rows if row.name == name]


def main() -> None:
    """Serve until the input ends."""
    logging.basicConfig(level=os.environ.get("IRIS_LOG", "WARNING"), stream=sys.stderr)
    state = Path(tempfile.mkdtemp(prefix="iris-state-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    version = importlib.metadata.version("marin-iris")
    cluster = _june(port, state) if version.startswith("0.2.20.") else _october(port, state)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what Iris prints is no answer
    url = cluster.start()
    answers.write(json.dumps({"url": url, "version": version}) + "\n")
    commands = Commands(cluster)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            result = getattr(commands, command.pop("op"))(**command)
            answers.write(json.dumps({"ok": result}) + "\n")
        except Exception as err:
            answers.write(json.dumps({"error": repr(err)}) + "\n")
    cluster.close()
    shutil.rmtree(state, ignore_errors=True)
    os._exit(0)  # some of its threads do not end


if __name__ == "__main__":
    main()
