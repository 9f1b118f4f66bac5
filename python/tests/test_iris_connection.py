"""What of a call to an Iris controller happens once, and which errors are which."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from fray.cluster import (
    AccessDeniedError,
    AlreadyExistsError,
    ClusterUnavailableError,
    Entrypoint,
    InvalidRequestError,
    JobGroupConfig,
    JobId,
    JobRequest,
    JobStatus,
    NameClash,
    NotFoundError,
    RefusedError,
    UnsupportedError,
    WaitTimeoutError,
)
from fray.cluster.iris import IrisCluster
from fray.cluster.iris.identity import own_identity
from fray.cluster.iris.leases import Lease, Leases, granted
from iris_replay import Answer, controller
from waiting import ended, eventually

TRUE = JobRequest("train", Entrypoint.from_command(["true"]))


@pytest.fixture(autouse=True)
def _outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("FRAY_NAMESPACE", "FRAY_JOB_ID", "IRIS_TASK_ID", "FRAY_CLUSTER_TOKEN"):
        monkeypatch.delenv(name, raising=False)


class Controller:
    """Launches jobs, and loses answers."""

    def __init__(self, lost: int = 0, carried_out: bool = True) -> None:
        self.lost, self.carried_out = lost, carried_out
        self.launched: list[dict[str, Any]] = []
        self.states: dict[str, str] = {}

    def __call__(self, path: str, request: dict[str, Any]) -> Answer | None:
        match path.rpartition("/")[2]:
            case "LaunchJob":
                lost, self.lost = self.lost > 0, self.lost - 1
                if not lost or self.carried_out:
                    if self.launched:
                        return 409, {"code": "already_exists", "message": "it lives"}
                    self.launched.append(request)
                return None if lost else (200, {"jobId": request["name"]})
            case "GetJobStatus" if self.launched:
                return 200, {"job": {"jobId": "/alice/train"}, "request": self.launched[-1]}
            case "GetJobStatus":
                return 404, {"code": "not_found", "message": "none"}
            case "GetJobState":
                return 200, {"states": self.states}
            case _:
                return 200, {}


@pytest.mark.parametrize("carried_out", [True, False])
def test_launch_whose_answer_is_lost_happens_once(carried_out: bool) -> None:
    server = Controller(lost=1, carried_out=carried_out)
    with controller(server) as (address, calls):
        cluster = IrisCluster(address, user="alice")
        assert cluster.launch(TRUE) == "/alice/train"
        cluster.close()
    assert len(server.launched) == 1
    launches = [path for path, _ in calls if path.endswith("/LaunchJob")]
    assert len(launches) == (1 if carried_out else 2)


def test_another_job_of_the_name_is_not_taken_for_it() -> None:
    server = Controller()
    with controller(server) as (address, _):
        first, second = IrisCluster(address, user="alice"), IrisCluster(address, user="alice")
        first.launch(TRUE)
        server.lost = 1
        with pytest.raises(AlreadyExistsError, match="/alice/train lives"):
            second.launch(TRUE)
        first.close()
        second.close()


def test_second_launch_sends_no_bundle() -> None:
    server = Controller()
    with controller(server) as (address, calls):
        cluster = IrisCluster(address, user="alice")
        cluster.launch(TRUE)
        server.launched.clear()
        cluster.launch(TRUE)
        cluster.close()
    sent = [body for path, body in calls if path.endswith("/LaunchJob")]
    assert ["bundleBlob" in body for body in sent] == [True, False]
    assert len(sent[1]["bundleId"]) == 64


def test_group_is_launched_as_a_whole_or_not() -> None:
    def answer(path: str, request: dict[str, Any]) -> Answer:
        if path.endswith("/LaunchJob") and request["name"].endswith("b"):
            return 400, {"code": "failed_precondition", "message": "no matching scaling group"}
        return 200, {"jobId": request.get("name", "")}

    requests = [JobRequest(name, Entrypoint.from_command(["true"])) for name in ("a", "b")]
    with controller(answer) as (address, calls):
        cluster = IrisCluster(address, user="alice")
        assert cluster.launch_group(requests[:1], JobGroupConfig("one")) == ["/alice/a"]
        with pytest.raises(RefusedError, match="no matching scaling group"):
            cluster.launch_group(requests, JobGroupConfig("both"))
        cluster.close()
    assert [body["jobId"] for path, body in calls if path.endswith("/TerminateJob")] == ["/alice/a"]


class Keeping:
    """A controller at which a job lives that another program has launched, and that launches no job b."""

    def __call__(self, path: str, request: dict[str, Any]) -> Answer:
        match path.rpartition("/")[2]:
            case "LaunchJob" if request["name"].endswith("b"):
                return 400, {"code": "failed_precondition", "message": "no matching scaling group"}
            case "LaunchJob":
                return 200, {"jobId": request["name"]}
            case "GetJobStatus":
                theirs = {"environment": {"envVars": {"FRAY_IRIS_LAUNCH": "of another program"}}}
                return 200, {"job": {"jobId": request["jobId"]}, "request": theirs}
            case _:
                return 200, {}


def kept(name: str, **options: Any) -> JobRequest:
    return JobRequest(name, Entrypoint.from_command(["true"]), name_clash=NameClash.KEEP, **options)


def test_a_job_that_was_kept_is_not_ended_with_this_process() -> None:
    with controller(Keeping()) as (address, calls):
        cluster = IrisCluster(address, user="alice")
        assert cluster.launch(kept("a", session=cluster.session())) == "/alice/a"
        cluster.close()
    assert not [body for path, body in calls if path.endswith("/TerminateJob")]


def test_a_job_that_was_kept_is_not_ended_with_a_group() -> None:
    with controller(Keeping()) as (address, calls):
        cluster = IrisCluster(address, user="alice")
        with pytest.raises(RefusedError, match="no matching scaling group"):
            cluster.launch_group([kept("a"), kept("b")], JobGroupConfig("both"))
        cluster.close()
    assert not [body for path, body in calls if path.endswith("/TerminateJob")]


@pytest.mark.parametrize(("own", "token"), [(True, "Bearer secret"), (False, "")])
def test_the_token_of_a_task_is_for_its_own_controller(
    monkeypatch: pytest.MonkeyPatch, own: bool, token: str
) -> None:
    monkeypatch.setenv("IRIS_TASK_ID", "/alice/train/0:0")
    monkeypatch.setenv("IRIS_TASK_TOKEN", "secret")
    with shown_tokens() as (address, tokens):
        monkeypatch.setenv("IRIS_CONTROLLER_ADDRESS", f"http://{address if own else 'controller:10000'}")
        cluster = IrisCluster(address)
        cluster.terminate(JobId("/alice/train"))
        cluster.close()
    assert tokens == [token]


@contextmanager
def shown_tokens() -> Iterator[tuple[str, list[str]]]:
    """Serve a controller; yields its address and the authorization of each call."""
    tokens: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            tokens.append(self.headers.get("Authorization", ""))
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}", tokens
        finally:
            server.shutdown()
            thread.join()


def test_a_watch_outlives_a_controller_that_is_away() -> None:
    away = iter([True] * 3)

    def answer(path: str, _request: dict[str, Any]) -> Answer | None:
        if path.endswith("/GetJobState"):
            return None if next(away, False) else (200, {"states": {"/alice/train": "JOB_STATE_RUNNING"}})
        return 200, {}

    with controller(answer) as (address, _):
        cluster = IrisCluster(address, user="alice", timeout=0.1)
        watch = cluster.metadata_of("alice").watch("counter", job_id=JobId("/alice/train"))
        assert next(iter(watch)).reset
        watch.close()
        cluster.close()
    assert next(away, None) is None


def test_namespaces_have_identities_of_their_own() -> None:
    assert own_identity("rl/a") != own_identity("rl_a")
    assert Path(own_identity("rl/a")).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("not_found", 404, NotFoundError),
        ("failed_precondition", 400, RefusedError),
        ("resource_exhausted", 429, RefusedError),
        ("invalid_argument", 400, InvalidRequestError),
        ("permission_denied", 403, AccessDeniedError),
        ("unauthenticated", 401, AccessDeniedError),
        ("unimplemented", 501, UnsupportedError),
    ],
)
def test_errors(code: str, status: int, error: type[Exception]) -> None:
    with controller(lambda _path, _request: (status, {"code": code, "message": "because"})) as (address, _):
        cluster = IrisCluster(address, user="alice")
        with pytest.raises(error):
            cluster.terminate("/alice/train")  # type: ignore[arg-type]
        cluster.close()


def test_what_is_no_controller() -> None:
    with controller(lambda _path, _request: (404, "Not Found")) as (address, _):
        cluster = IrisCluster(address, user="alice")
        with pytest.raises(UnsupportedError, match="is it the controller of Iris"):
            cluster.terminate("/alice/train")  # type: ignore[arg-type]
        cluster.close()
    with controller(lambda _path, _request: (401, "")) as (address, _):
        cluster = IrisCluster(address, user="alice")
        with pytest.raises(AccessDeniedError, match="set FRAY_CLUSTER_TOKEN"):
            cluster.terminate("/alice/train")  # type: ignore[arg-type]
        cluster.close()


def test_no_server_there() -> None:
    with controller(Controller()) as (address, _):
        pass
    cluster = IrisCluster(address, user="alice", timeout=0.3)
    with pytest.raises(ClusterUnavailableError, match=f"the cluster at {address} did not answer"):
        cluster.terminate("/alice/train")  # type: ignore[arg-type]


def test_wait_goes_on_while_the_controller_is_away() -> None:
    server = Controller()
    server.states = {"/alice/train": "JOB_STATE_RUNNING"}
    gone = threading.Event()

    def answer(path: str, request: dict[str, Any]) -> Answer | None:
        if gone.is_set() and path.endswith("/GetJobState"):
            away.append(path)
            return (
                None if len(away) < 3 else (503, "the proxy sees no controller") if len(away) < 4 else back()
            )
        return server(path, request)

    def back() -> Answer:
        gone.clear()
        cluster._connection.timeout = 300  # of the calls that tell how the job stands
        return 200, {"states": {"/alice/train": "JOB_STATE_SUCCEEDED"}}

    away: list[str] = []
    with controller(answer) as (address, calls):
        cluster = IrisCluster(address, user="alice", timeout=0.1)  # which is not for waiting
        server.launched.append({})
        found: list[JobStatus] = []
        thread = threading.Thread(target=lambda: found.append(cluster.wait("/alice/train").status))  # type: ignore[call-overload]
        thread.start()
        eventually(lambda: any(path.endswith("/GetJobState") for path, _ in calls))
        gone.set()
        ended(thread)
        cluster.close()
    assert len(found) == 1
    assert len(away) == 4


def test_wait_in_time_while_the_controller_is_away() -> None:
    with controller(lambda _path, _request: None) as (address, _):
        cluster = IrisCluster(address, user="alice")
        with pytest.raises(WaitTimeoutError):
            cluster.wait("/alice/train", timeout=0.2)  # type: ignore[call-overload]
        cluster.close()


def test_token_stays_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAY_CLUSTER_TOKEN", "secret-of-a-user")
    with pytest.raises(AccessDeniedError, match="plain text") as raised:
        IrisCluster("iris://controller.example:10000")
    assert "secret-of-a-user" not in str(raised.value)
    IrisCluster("iris://controller.example:10000?tls=1").close()
    IrisCluster("127.0.0.1:10000").close()


# Leases


def test_lease_is_renewed_until_it_is_dropped() -> None:
    renewed: list[str] = []

    def register(body: Mapping[str, Any]) -> Any:
        renewed.append(body["endpointId"])
        return {"leaseDuration": {"milliseconds": "30"}}

    leases = Leases(register)
    leases.keep({"endpointId": "a", "name": "n"}, {"leaseDuration": {"milliseconds": "30"}})
    eventually(lambda: len(renewed) > 3)
    leases.drop("a")
    count = len(renewed)
    leases.keep({"endpointId": "b", "name": "n"}, {"leaseDuration": {"milliseconds": "30"}})
    eventually(lambda: renewed.count("b") > 3)
    assert renewed.count("a") == count
    leases.close()


def test_lease_of_a_task_that_is_over_is_given_up() -> None:
    def refuse(_body: object) -> None:
        raise RefusedError("attempt 0 is no longer current")

    assert Leases(refuse).renewed(Lease({"endpointId": "a", "name": "n"}, 0.0)) is None


def test_lease_is_tried_again_while_the_controller_is_away() -> None:
    def away(_body: object) -> None:
        raise ClusterUnavailableError("here", 1, 1.0, "refused")

    lease = Lease({"endpointId": "a", "name": "n"}, 0.0)
    again = Leases(away).renewed(lease)
    assert again is not None
    assert again.due > lease.due


def test_granted() -> None:
    assert granted({"leaseDuration": {"milliseconds": "180000"}}) == 180
    assert granted({}) == 600
