"""Calls to the coordinator: a method's name and named arguments, in and out as JSON."""

import json
import os
import time
import urllib.error
import urllib.request
from typing import Any

# For how long a coordinator that does not answer may be on its way back.
PATIENCE_SECONDS = 120


class Coordinator:
    """The coordinator at COORDINATOR, as host:port."""

    def __init__(self):
        self.address = os.environ["COORDINATOR"]

    def call(self, method: str, **arguments: Any) -> dict:
        """Call a method. An answer that is an error is raised; silence is waited out for a while."""
        request = urllib.request.Request(
            f"http://{self.address}/{method}",
            data=json.dumps(arguments).encode(),
            headers={"Content-Type": "application/json"},
        )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
                    return json.load(response)
            except urllib.error.HTTPError as error:
                raise RuntimeError(f"{method}: {error.read().decode()}") from error
            except OSError as error:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{method}: no answer from {self.address}: {error}") from error
                time.sleep(0.2)
