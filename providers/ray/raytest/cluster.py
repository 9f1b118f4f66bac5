"""A Ray cluster of several nodes on this machine, for tests.

Its argument is JSON: {"dashboard_port", "nodes": [{"num_cpus", "resources", "labels"}, …]},
the head first. Its files are in TMPDIR/ray, by which Ray's drivers tell it
from other clusters on this machine. It writes "ready URL", then answers each line of its standard input:

    kill N         kill node N with all its processes        "killed"
    add {…}        add a node                                "added"

It ends the cluster when its standard input ends.
"""

import contextlib
import inspect
import json
import socket
import sys
import time

from ray._private import services
from ray._raylet import persist_port
from ray.cluster_utils import Cluster

MEMORY = 80_000_000  # bytes of each node's object store


PATIENCE = 900  # seconds that a node may take to start; Ray itself waits for 30, which a busy machine exceeds


AGENT_PORTS = (
    "metrics_agent_port",
    "metrics_export_port",
    "dashboard_agent_listen_port",
    "runtime_env_agent_port",
)


def agent_ports():
    """Return free ports for the agents of a node."""
    with contextlib.ExitStack() as chosen:
        sockets = {name: chosen.enter_context(socket.create_server(("", 0))) for name in AGENT_PORTS}
        return {name: each.getsockname()[1] for name, each in sockets.items()}


def unhurried(start):
    """Return what starts a raylet that finds its agents' ports in their files at once.

    The agents write these files when they listen. A raylet aborts where that takes 30 s, which no setting
    changes and a busy machine exceeds.
    """
    signature = inspect.signature(start)

    def call(*args, **options):
        given = signature.bind(*args, **options).arguments
        for name in AGENT_PORTS:
            persist_port(given["session_dir"], given["node_id"], name, given[name])
        return start(*args, **options)

    return call


def patient(read):
    """Return what repeats a reading of the nodes until the node is among them."""

    def call(*args, **options):
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return read(*args, **options)
            except RuntimeError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    return call


def main():
    """Serve until the input ends."""
    services.get_node = patient(services.get_node)
    services.start_raylet = unhurried(services.start_raylet)
    Cluster._wait_for_node.__defaults__ = (PATIENCE,)
    order = json.loads(sys.argv[1])
    head, *others = order["nodes"]
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "object_store_memory": MEMORY,
            "include_dashboard": True,
            "dashboard_host": "127.0.0.1",
            "dashboard_port": order["dashboard_port"],
            **agent_ports(),
            **head,
        },
    )
    nodes = [cluster.head_node]
    nodes += [cluster.add_node(object_store_memory=MEMORY, **agent_ports(), **each) for each in others]
    print("ready http://" + cluster.webui_url, flush=True)
    for line in sys.stdin:
        verb, _, rest = line.strip().partition(" ")
        if verb == "kill":
            cluster.remove_node(nodes[int(rest)], allow_graceful=False)
            print("killed", flush=True)
        elif verb == "add":
            nodes.append(cluster.add_node(object_store_memory=MEMORY, **agent_ports(), **json.loads(rest)))
            print("added", flush=True)
    for node in list(cluster.worker_nodes):
        cluster.remove_node(node, allow_graceful=False)
    cluster.remove_node(cluster.head_node, allow_graceful=False)


if __name__ == "__main__":
    main()
