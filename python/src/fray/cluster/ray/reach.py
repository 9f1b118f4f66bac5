"""How programs without Ray reach the actors of a namespace."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reach:
    """How a program without Ray reaches the registry."""

    address: str
    """Of the machine, for programs elsewhere."""
    port: int
    token: str
    fingerprint: str
    namespace: str

    @property
    def local(self) -> str:
        """The FRAY_CLUSTER_SPEC of programs on the head's machine."""
        return f"fray://127.0.0.1:{self.port}?namespace={self.namespace}"

    @property
    def remote(self) -> str:
        """The FRAY_CLUSTER_SPEC of programs on other machines."""
        known = f"fingerprint={self.fingerprint}&namespace={self.namespace}"
        return f"fray://{self.address}:{self.port}?{known}"
