"""A Ray cluster of several nodes on this machine, for tests.

Its argument is JSON: {"dashboard_port", "nodes": [{"num_cpus", "resources", "labels"}, …]},
the head first. Its files are in TMPDIR/ray, by which Ray's drivers tell it
from other clusters on this machine. It writes "ready URL", then answers each line of its standard input:

    kill N         kill node N with all its processes        "killed"
    add {…}        add a node                                "added"

It ends the cluster when its standard input ends.
"""

import json
import sys

from ray.cluster_utils import Cluster

from engines.ray.starting import be_patient, node_options


def main():
    """Serve until the input ends."""
    be_patient()
    order = json.loads(sys.argv[1])
    head, *others = order["nodes"]
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "include_dashboard": True,
            "dashboard_host": "127.0.0.1",
            "dashboard_port": order["dashboard_port"],
            **node_options(),
            **head,
        },
    )
    nodes = [cluster.head_node]
    nodes += [cluster.add_node(**node_options(), **each) for each in others]
    print("ready http://" + cluster.webui_url, flush=True)
    for line in sys.stdin:
        verb, _, rest = line.strip().partition(" ")
        if verb == "kill":
            cluster.remove_node(nodes[int(rest)], allow_graceful=False)
            print("killed", flush=True)
        elif verb == "add":
            nodes.append(cluster.add_node(**node_options(), **json.loads(rest)))
            print("added", flush=True)
    for node in list(cluster.worker_nodes):
        cluster.remove_node(node, allow_graceful=False)
    cluster.remove_node(cluster.head_node, allow_graceful=False)


if __name__ == "__main__":
    main()
