"""FrayIrisClient: jobs and actors on an Iris cluster."""

from __future__ import annotations

import os

from fray.cluster.iris import IrisCluster
from fray.v2.client import _ClusterClient


class FrayIrisClient(_ClusterClient):
    """Submits jobs to an Iris cluster."""

    def __init__(self, controller_address: str, workspace: str | os.PathLike[str] | None = None) -> None:
        """Use a controller, see fray.cluster.iris.IrisCluster.

        Args:
            controller_address: HOST:PORT, http://HOST:PORT, https://HOST:PORT, or iris://HOST:PORT, which may
                end in ?user=NAME, namespace=NAME and tls=1.
            workspace: The project that is shipped with jobs; None: the nearest directory with a
                pyproject.toml at or above the working directory.

        Raises:
            ValueError: the address is none.
            AccessDeniedError: the token would leave this machine in plain text.
        """
        super().__init__(IrisCluster(controller_address, workspace=workspace))
