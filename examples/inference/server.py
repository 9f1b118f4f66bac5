"""One replica of the model server.

POST /complete {"prompt": …, "length": …} answers {"completion": …, "replica": …};
GET /healthz answers once the model is ready, GET /stats counts what was served. It
reads FRAY_PORT_HTTP, REPLICA and CORPUS, the text to learn from.
"""

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import ngram

LONGEST = 1000  # characters of one completion


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ngram.Model
    replica: int
    served = 0
    lock = threading.Lock()

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self._answer(200, {"ok": True})
        elif self.path == "/stats":
            self._answer(200, {"replica": self.replica, "served": Handler.served})
        else:
            self._answer(404, {"error": f"nothing at {self.path}"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/complete":
            self._answer(404, {"error": f"nothing at {self.path}"})
            return
        try:
            request = json.loads(body)
            prompt, length = str(request["prompt"]), min(int(request.get("length", 80)), LONGEST)
        except (ValueError, KeyError, TypeError) as error:
            self._answer(400, {"error": f"want prompt and length: {error}"})
            return
        completion = self.model.complete(prompt, length)
        with self.lock:
            Handler.served += 1
        self._answer(200, {"completion": completion, "replica": self.replica})

    def _answer(self, status: int, value: dict) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        """Leave the log to what matters."""


def main() -> None:
    began = time.monotonic()
    Handler.replica = int(os.environ["REPLICA"])
    Handler.model = ngram.Model(Path(os.environ["CORPUS"]))
    # Only a server that has its model listens, so that being reachable means being ready.
    server = ThreadingHTTPServer(("", int(os.environ["FRAY_PORT_HTTP"])), Handler)
    server.daemon_threads = True
    print(f"replica {Handler.replica}: ready after {time.monotonic() - began:.1f} s, port {server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
