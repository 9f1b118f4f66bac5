"""What this process shows to actors of a Ray cluster, as files that end with it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from pathlib import Path

from fray.cluster.ray.calls import Calls
from fray.cluster.ray.private import write_private


def shown(identity: bytes, directory: Path) -> dict[str, str]:
    """Return the variable by which a task has its identity, in a file of the task's directory; b"": none."""
    if not identity:
        return {}
    path = directory / "identity.pem"
    write_private(path, identity)
    return {"FRAY_ACTOR_IDENTITY": str(path)}


class Identities:
    """The files, by namespace."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._lock = threading.Lock()
        self._files: dict[str, str] = {}
        self._directory = ""

    @property
    def busy(self) -> bool:
        """See Attachment."""
        return False

    def file(self, namespace: str, wait: bool) -> str | None:
        """Return the file of a namespace; None: it was not asked for yet, and the call does not `wait`."""
        found = self._files.get(namespace)
        if found is not None or not wait:
            return found
        content: bytes = self._calls.call("actors", "identity", namespace)
        with self._lock:
            if not self._directory:
                self._directory = tempfile.mkdtemp(prefix="fray-identity-")
                atexit.register(self.close)
            path = Path(self._directory, f"{namespace.replace('/', '%2F')}.pem")
            if namespace not in self._files:
                write_private(path, content)
                self._files[namespace] = str(path)
            return self._files[namespace]

    def close(self) -> None:
        """Remove the files. They are made again where they are needed."""
        with self._lock:
            atexit.unregister(self.close)
            self._files = {}
            if self._directory:
                shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = ""
