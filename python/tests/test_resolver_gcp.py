"""Finding actors by labels, with the two APIs as an HTTP server of the test's own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fray.cluster import AccessDeniedError, ActorNotFoundError, ClusterUnavailableError, WaitTimeoutError
from fray.rpc import GcpResolver
from fray.rpc._calling.gcp_api import Urls
from scripted import Scripted
from waiting import ended


class Google:
    """Answers paths with pages."""

    def __init__(self) -> None:
        self.pages: dict[str, list[dict[str, Any]]] = {}
        self.asked: list[str] = []
        self.status = 200
        google = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                google.answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        status, body = self.status, self.page(parts.path, parse_qs(parts.query))
        if parts.path.startswith("/computeMetadata/"):
            assert request.headers["Metadata-Flavor"] == "Google"
            status, body = 200, {"access_token": "secret", "expires_in": 3600}
        elif request.headers["Authorization"] != "Bearer secret":
            status = 401
        request.send_response(status)
        request.end_headers()
        request.wfile.write(json.dumps(body).encode())

    def page(self, path: str, query: dict[str, list[str]]) -> dict[str, Any]:
        self.asked.append(path)
        pages = self.pages.get(path, [{}])
        number = int(query.get("pageToken", ["0"])[0])
        more = {"nextPageToken": str(number + 1)} if number + 1 < len(pages) else {}
        return {**pages[number], **more}

    def resolver(self, *zones: str, namespace: str = "rl") -> GcpResolver:
        return GcpResolver("acme", zones, namespace=namespace, urls=Urls(self.url, self.url, self.url))


@pytest.fixture
def google() -> Iterator[Google]:
    google = Google()
    yield google
    google.server.shutdown()
    google.server.server_close()


def labels(port: int, namespace: str = "rl", name: str = "counter") -> dict[str, str]:
    return {f"fray-actor-{name}": str(port), "fray-namespace": namespace}


def node(state: str, ip: str, labels: dict[str, str]) -> dict[str, Any]:
    return {
        "state": state,
        "networkEndpoints": [{"ipAddress": ip}, {"ipAddress": "10.9.9.9"}],
        "labels": labels,
    }


def instance(status: str, ip: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"status": status, "networkInterfaces": [{"networkIP": ip}], "labels": labels}


def test_zones(google: Google) -> None:
    google.pages = {
        "/v2/projects/acme/locations/us-a/nodes": [
            {"nodes": [node("READY", "10.0.0.1", labels(1)), node("PREEMPTED", "10.0.0.2", labels(2))]},
            {"nodes": [node("READY", "10.0.0.3", labels(3, "other")), {"state": "READY"}]},
            {"nodes": [node("READY", "10.0.0.4", {**labels(4), "fray-actor-other": "44"})]},
        ],
        "/compute/v1/projects/acme/zones/us-a/instances": [
            {
                "items": [
                    instance("RUNNING", "10.0.1.1", labels(5)),
                    instance("STOPPING", "10.0.1.2", labels(6)),
                ]
            }
        ],
    }
    resolver = google.resolver("us-a")
    assert resolver.resolve("counter") == [
        "actor://10.0.0.1:1/counter",
        "actor://10.0.0.4:4/counter",
        "actor://10.0.1.1:5/counter",
    ]
    assert resolver.resolve("other") == ["actor://10.0.0.4:44/other"]
    asked = len(google.asked)
    assert len(resolver.lookup_all("counter")) == 3
    assert len(google.asked) == asked, "a list counts for some time"
    assert google.resolver("us-a", namespace="other").resolve("counter") == ["actor://10.0.0.3:3/counter"]


def test_all_zones(google: Google) -> None:
    google.pages = {
        "/v2/projects/acme/locations/-/nodes": [{"nodes": [node("READY", "10.0.0.1", labels(1))]}],
        "/compute/v1/projects/acme/aggregated/instances": [
            {
                "items": {
                    "zones/us-a": {"instances": [instance("RUNNING", "10.0.1.1", labels(5))]},
                    "zones/us-b": {"warning": {}},
                }
            }
        ],
    }
    assert google.resolver().resolve("counter") == [
        "actor://10.0.0.1:1/counter",
        "actor://10.0.1.1:5/counter",
    ]


def test_calling_one_that_moves(google: Google) -> None:
    path = "/v2/projects/acme/locations/us-a/nodes"
    with Scripted() as first, Scripted(incarnation="actor-" + 26 * "b") as second:
        google.pages[path] = [{"nodes": [node("READY", "127.0.0.1", labels(first.port))]}]
        handle = google.resolver("us-a").lookup("counter")
        assert handle.increment(1) == 1
        first.close()
        google.pages[path] = [{"nodes": [node("READY", "127.0.0.1", labels(second.port))]}]
        assert handle.options(idempotent=True).increment(2) == 1
        assert second.runs == [[2]]


def test_waiting(google: Google) -> None:
    resolver = google.resolver("us-a")
    with pytest.raises(ActorNotFoundError, match='fray-actor-counter and fray-namespace = "rl"'):
        resolver.lookup("counter")
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(resolver.wait_for_actor("counter").address))
    thread.start()
    path = "/v2/projects/acme/locations/us-a/nodes"
    google.pages[path] = [{"nodes": [node("READY", "10.0.0.1", labels(7))]}]
    ended(thread)
    assert found == ["10.0.0.1:7"]


NODES, INSTANCES = "/v2/projects/acme/locations/us-a/nodes", "/compute/v1/projects/acme/zones/us-a/instances"
ALL_NODES, ALL = "/v2/projects/acme/locations/-/nodes", "/compute/v1/projects/acme/aggregated/instances"
WARNING = {"code": "UNREACHABLE", "message": "the power is gone"}
Pages = dict[str, list[dict[str, Any]]]
GAPS: dict[str, tuple[Pages, str, tuple[str, ...]]] = {
    "nodes": ({ALL_NODES: [{"unreachable": ["projects/acme/locations/us-a"]}]}, "could not reach it", ()),
    "a zone of instances": ({ALL: [{"items": {"zones/us-a": {"warning": WARNING}}}]}, "power is gone", ()),
    "unreachables": ({ALL: [{"unreachables": ["projects/acme/zones/us-a"]}]}, "could not reach it", ()),
    "data of a warning": (
        {ALL: [{"warning": {**WARNING, "data": [{"key": "scope", "value": "zones/us-a"}]}}]},
        "power is gone",
        (),
    ),
    "nodes of one zone": ({NODES: [{"unreachable": ["locations/us-a"]}]}, "could not reach it", ("us-a",)),
    "instances of one zone": ({INSTANCES: [{"warning": WARNING}]}, "power is gone", ("us-a",)),
}


@pytest.mark.parametrize("gap", GAPS)
def test_a_zone_that_is_left_out_has_not_lost_its_machines(google: Google, gap: str) -> None:
    pages, why, zones = GAPS[gap]
    vm = {**instance("RUNNING", "10.0.1.1", labels(5)), "zone": "projects/acme/zones/us-a", "name": "vm"}
    gone = {**vm, "zone": "projects/acme/zones/us-b", "name": "gone"}
    google.pages = {
        ALL: [{"items": {"zones/us-a": {"instances": [vm]}, "zones/us-b": {"instances": [gone]}}}],
        INSTANCES: [{"items": [vm]}],
    }
    resolver, late = google.resolver(*zones), google.resolver(*zones)
    assert len(resolver.resolve("counter")) == (1 if zones else 2)
    google.pages = dict(pages)
    assert [e.address for e in resolver.directory.fresh("counter")] == ["10.0.1.1:5"]
    with pytest.raises(ClusterUnavailableError, match=rf"nothing can be listed now: us-a \(.*{why}\)"):
        resolver.lookup("weights")
    with pytest.raises(ClusterUnavailableError, match="us-a"):
        late.resolve("counter")
    with pytest.raises(WaitTimeoutError, match=f"us-a .*{why}"):
        late.wait_for_actor("counter", 0.01)
    google.pages = {}
    assert resolver.directory.fresh("counter") == []
    with pytest.raises(ActorNotFoundError, match="fray-actor-counter"):
        resolver.lookup("counter")


def test_lists_that_are_not_whole_and_do_not_name_what_is_missing(google: Google) -> None:
    google.pages = {ALL: [{"warning": WARNING}]}
    with pytest.raises(ClusterUnavailableError, match="does not name what is missing: the power is gone"):
        google.resolver().lookup("counter")
    google.pages = {ALL: [{"warning": {"code": "NO_RESULTS_ON_PAGE"}}]}
    with pytest.raises(ActorNotFoundError):
        google.resolver().lookup("counter")


def test_what_is_known_stays_while_nothing_can_be_listed(google: Google) -> None:
    google.pages = {NODES: [{"nodes": [node("READY", "10.0.0.1", labels(1))]}]}
    resolver = google.resolver("us-a")
    assert resolver.resolve("counter") == ["actor://10.0.0.1:1/counter"]
    google.status = 503
    assert [e.address for e in resolver.directory.fresh("counter")] == ["10.0.0.1:1"]
    with pytest.raises(ClusterUnavailableError, match="503"):
        resolver.directory.fresh("weights")


@pytest.mark.parametrize(("status", "kind"), [(403, AccessDeniedError), (503, ClusterUnavailableError)])
def test_lists_that_cannot_be_had(google: Google, status: int, kind: type[Exception]) -> None:
    google.status = status
    with pytest.raises(kind, match=f"/v2/projects/acme/locations/us-a/nodes.*{status}"):
        google.resolver("us-a").lookup("counter")


def test_names_that_are_no_labels(google: Google) -> None:
    with pytest.raises(ValueError, match='"Counter" is no label'):
        google.resolver("us-a").lookup("Counter")
