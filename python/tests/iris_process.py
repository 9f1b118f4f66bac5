"""A real Iris in a process of its own, see engines/iris/iris_server.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fray.cluster.errors import UnsupportedError
from fray.cluster.iris import spec
from fray.cluster.iris.connection import Connection

PYTHON = os.environ.get("FRAY_IRIS_PYTHON", sys.executable)
"""The Python that has marin-iris."""


class Iris:
    """A controller with workers, in a process of its own."""

    def __init__(self, home: Path) -> None:
        environ = {**os.environ, "HOME": str(home), "PYTHONPATH": ""}
        self._log = (home / "iris.log").open("w")
        self._process = subprocess.Popen(
            [PYTHON, str(Path(__file__).parent / "engines" / "iris" / "iris_server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environ,
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        if not first:
            raise RuntimeError(f"Iris did not start:\n{(home / 'iris.log').read_text()[-4000:]}")
        about = json.loads(first)
        self.url: str = about["url"]
        self.version: str = about["version"]

    @property
    def is_june(self) -> bool:
        """Whether it is of June 2026."""
        return self.version.startswith("0.2.20.")

    def ask(self, op: str, **arguments: object) -> Any:
        """Have the process do something, see engines/iris/iris_server.py."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer
        return answer["ok"]

    def preempt(self, task: str) -> None:
        """Take a task its place; by KickTasks where the release has it."""
        body = {"targets": [task], "desiredState": "TASK_STATE_PREEMPTED", "reason": "a test"}
        try:
            results = self.call("KickTasks", body)["results"]
            assert all(result["queued"] for result in results), results
        except UnsupportedError:
            self.ask("preempt", task=task)

    def call(self, method: str, body: Mapping[str, Any]) -> Any:
        """Call the controller."""
        connection = Connection(spec.of_address(self.url), 10)
        try:
            return connection.call(method, body)
        finally:
            connection.close()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()
