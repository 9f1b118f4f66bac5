"""How programs without Ray reach the actors of a namespace: `python -m fray.cluster.ray.reach ray:auto`.

It prints the variables by which Go programs and processes without Ray find them, as lines for a shell:

    eval "$(python -m fray.cluster.ray.reach 'ray:auto?namespace=rl')"

Those are for the machine of the cluster's head. With `--remote FILE` they are for other machines, and FILE is
written, which has what the actors want to be shown; copy it there, and name its place in FRAY_ACTOR_IDENTITY.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fray.cluster.ray.private import write_private


@dataclass(frozen=True)
class Reach:
    """Where the registry of a namespace answers programs without Ray."""

    address: str
    """Of the machine, for programs elsewhere."""
    port: int
    token: str = field(repr=False)
    fingerprint: str
    """Of the certificate that it shows to other machines, the SHA-256 in hex."""
    namespace: str

    def variables(self, remote: str = "") -> dict[str, str]:
        """Return the variables of a program on the head's machine.

        With `remote`, those of one on another machine, where that is the path of the file with its identity.
        """
        spec = f"fray://127.0.0.1:{self.port}?namespace={self.namespace}"
        found = {"FRAY_NAMESPACE": self.namespace, "FRAY_CLUSTER_TOKEN": self.token}
        if remote:
            known = f"fingerprint={self.fingerprint}&namespace={self.namespace}"
            spec = f"fray://{self.address}:{self.port}?{known}"
            found["FRAY_ACTOR_IDENTITY"] = remote
        else:
            found["FRAY_CLUSTER_ADDRESS"] = f"127.0.0.1:{self.port}"  # for Go
        return {"FRAY_CLUSTER_SPEC": spec, "FRAY_CLIENT_SPEC": spec, **found}


def main(arguments: Sequence[str]) -> int:
    """Print the variables of a namespace."""
    parser = argparse.ArgumentParser(
        prog="python -m fray.cluster.ray.reach",
        description="Print the variables by which programs without Ray find the actors of a namespace.",
    )
    parser.add_argument(
        "spec", nargs="?", default="ray:auto", help="the cluster, with ?namespace=NAME; ray:auto without"
    )
    parser.add_argument(
        "--remote", metavar="FILE", default="", help="print those of other machines, and write what they show"
    )
    given = parser.parse_args(arguments)
    from fray.cluster.errors import ClusterError
    from fray.cluster.ray.cluster import RayCluster

    try:
        cluster = RayCluster.from_spec(given.spec)
        found = cluster.reach()
        if given.remote:
            write_private(Path(given.remote), cluster.identity())
    except (ClusterError, ValueError, ImportError, OSError) as err:
        sys.stderr.write(f"fray: {err}\n")
        return 1
    for name, value in found.variables(given.remote).items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
