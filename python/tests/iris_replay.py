"""Stand-ins for Iris's controller: one that answers as a real one did, and one that a test scripts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

RELEASES = ("june", "october")

Answer = tuple[int, Any]
"""The HTTP status and the body; None instead of a status closes the connection without an answer."""
Handler = Callable[[str, dict[str, Any]], Answer | None]
"""Answers a call of a method of some service, given its name and the request. None: no answer."""


def recorded(release: str) -> Mapping[str, list[dict[str, Any]]]:
    """Return the calls of each step that was recorded of a release."""
    path = Path(__file__).with_name("iris_wire") / f"{release}.json"
    steps: Mapping[str, list[dict[str, Any]]] = json.loads(path.read_text())["steps"]
    return steps


def call_of(release: str, step: str, method: str, key: str = "") -> dict[str, Any]:
    """Return the last call of a method in a step; `key`: one whose request has this text."""
    calls = [
        c
        for c in recorded(release)[step]
        if c["path"].endswith(f"/{method}") and key in json.dumps(c["request"])
    ]
    found: dict[str, Any] = calls[-1]
    return found


def replay(release: str, step: str) -> Handler:
    """Return what answers as in a step, and otherwise as a controller that knows of nothing."""
    every = [call for calls in recorded(release).values() for call in calls]
    there = {call["path"] for call in every if call["status"] == 200}

    def answer(path: str, request: dict[str, Any]) -> Answer:
        if path not in there:
            return 404, "Not Found"
        method = path.rpartition("/")[2]
        same = [c for c in recorded(release)[step] if c["path"] == path]
        exact = [c for c in same if c["request"] == request]
        if method == "FetchLogs" and not exact:
            return 200, {"cursor": request.get("cursor", "0")}
        accepted = [c for c in same if c["status"] == 200] if method == "LaunchJob" else same
        found = (exact or accepted or [{"status": 200, "response": {}}])[-1]
        return found["status"], found["response"]

    return answer


@contextmanager
def controller(handler: Handler) -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """Serve within the `with` statement. Yields host:port, and the path and the request of each call."""
    calls: list[tuple[str, dict[str, Any]]] = []

    class Server(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            calls.append((self.path, request))
            answer = handler(self.path, request)
            if answer is None:
                self.close_connection = True
                return
            status, body = answer
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", calls
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
