"""Tracking, errors, dumps and loggers: N77 to N79, N87 to N92 and N98."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fray.cluster import LocalCluster
from fray.rl import ActivityTrackerProxy, ErrorReporter, ErrorSeverity, NexRLModule
from fray.rl.config import Config
from fray.rl.experiment import WandbLogger
from fray.rpc.errors import ActorError
from rl_run import Run, Tracker


@pytest.fixture
def run() -> Iterator[Run]:
    with LocalCluster() as cluster:
        run = Run(cluster)
        yield run
        run.server.shutdown()


@pytest.fixture
def proxy(run: Run) -> ActivityTrackerProxy:
    return ActivityTrackerProxy(run.handle("activity_tracker"), "life-1")


def test_n87_everything_is_forwarded(run: Run, proxy: ActivityTrackerProxy) -> None:
    tracker = run.tracker
    token = proxy.start("m", "w")
    assert (tracker.open[token], tracker.history) == (("m", "w"), [("m", "w", "life-1")])
    assert not proxy.is_quiescent()
    assert not proxy.is_rollout_worker_quiescent()
    assert not proxy.wait_quiescent(0.1)
    assert proxy.get_running_status_summary() == "m: w"
    proxy.beat("m")
    assert tracker.beats.values == [("m", "life-1", {token: "w"})]
    proxy.end(token)
    proxy.end(token)
    assert proxy.is_quiescent()
    proxy.beat("m")
    assert tracker.beats.values[1][2] == {}
    assert proxy.check_module_liveness(1.0)
    assert proxy.get_error_health_status() == {"status": "healthy"}
    assert proxy.report_exception("m", "w", ValueError("v"), ErrorSeverity.WARNING) == "error-1"
    ((module, work, error, severity),) = tracker.errors.values
    assert (module, work, error["type"], error["message"], severity) == (
        "m",
        "w",
        "ValueError",
        "v",
        "warning",
    )


def test_a_start_without_an_answer_ends_with_the_next_heartbeat(
    run: Run, proxy: ActivityTrackerProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tracker may have begun the work: the heartbeat does not list its token, which was chosen before."""
    begin = run.tracker.start

    def lose(module: str, work: str, incarnation: str, token: str) -> str:
        begin(module, work, incarnation, token)
        raise ValueError("lost")

    monkeypatch.setattr(run.tracker, "start", lose)
    with pytest.raises(ValueError, match="lost"):
        proxy.start("m", "w")
    (token,) = run.tracker.open
    name, _, number = token.rpartition("-")
    proxy.beat("m")
    assert run.tracker.beats.values == [("m", "life-1", {})]
    assert run.tracker.following == f"{name}-{int(number) + 1}"


def test_n77_n87_track_reports_and_raises_again(run: Run, proxy: ActivityTrackerProxy) -> None:
    with proxy.track("m", "fine"):
        assert list(run.tracker.open.values()) == [("m", "fine")]
    assert not run.tracker.errors.values

    def fails() -> None:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"), proxy.track("m", "bad"):
        fails()
    ((_, work, error, severity),) = run.tracker.errors.values
    assert (work, error["type"], severity) == ("bad", "KeyError", "error")
    assert 'raise KeyError("lost")' in error["traceback"]
    assert not run.tracker.open
    with pytest.raises(KeyError), proxy.track("m", "bad", auto_report_errors=False):
        fails()
    assert len(run.tracker.errors.values) == 1


def test_n87_a_tracker_that_is_lost_hides_no_exception(
    run: Run, proxy: ActivityTrackerProxy, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any) -> None:
        raise ActorError("gone")

    def loses() -> None:
        run.tracker.report_exception = fails  # type: ignore[assignment]
        run.tracker.end = fails  # type: ignore[assignment]
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"), proxy.track("m", "bad"):
        loses()
    assert "could not be reported" in caplog.text
    assert "the end of bad could not be noted" in caplog.text


def test_n87_a_tracker_of_this_process_gets_the_exception_itself() -> None:
    class Central(Tracker):
        def start(self, module: str, work: str) -> str:  # type: ignore[override]
            return super().start(module, work, "")

        def report_exception(self, module: str, work: str, error: Any, severity: Any) -> str:
            self.errors.add((module, work, error, severity))
            return "e"

    central = Central()
    proxy = ActivityTrackerProxy(central)
    with pytest.raises(ValueError, match="x"), proxy.track("m", "w"):
        raise ValueError("x")
    assert isinstance(central.errors.values[0][2], ValueError)


def test_n88_posts_are_forwarded(run: Run, proxy: ActivityTrackerProxy) -> None:
    import numpy as np

    proxy.experiment_logger_post("jsonl", data={"loss": np.float32(0.5), "n": 1}, step=2)
    proxy.experiment_logger_post(backend="feishu", content="done", title="t")
    proxy.experiment_logger_post("jsonl", post_id="w/3", data={}, step=3)
    (first, second, third) = run.tracker.posts.values
    ids = [values.pop("id") for _, values in (first, second, third)]
    assert first == ("jsonl", {"data": {"loss": 0.5, "n": 1}, "step": 2})
    assert second == ("feishu", {"content": "done", "title": "t"})
    assert len({*ids, ""}) == 4
    assert ids[2] == "w/3"  # which stays the same where the post is made again


def test_n90_modules_are_registered_with_their_address(run: Run, proxy: ActivityTrackerProxy) -> None:
    proxy.register_module("rollout_worker_0", run.handle("data_loader"), is_rollout_worker=True)
    proxy.register_module("validator", "host:1")
    assert run.tracker.modules.values == [
        ("rollout_worker_0", run.server.address, True),
        ("validator", "host:1", False),
    ]


def test_n91_the_training_step_is_the_centres(run: Run, proxy: ActivityTrackerProxy) -> None:
    proxy.set_training_step(7)
    assert (run.tracker.step, proxy.get_training_step()) == (7, 7)


def test_n78_n92_health_is_that_of_the_last_five_minutes() -> None:
    now = [1000.0]
    reporter = ErrorReporter(clock=lambda: now[0])
    assert reporter.get_health_status() == {
        "status": "healthy",
        "message": "no recent errors",
        "recent_error_count": 0,
        "error_level_count": 0,
        "warning_level_count": 0,
    }
    reporter.report_error("m", "w", "odd", ErrorSeverity.WARNING)
    assert reporter.get_health_status()["status"] == "warning"
    now[0] += 100
    first = reporter.report_exception("m", "w", ValueError("bad"), details={"n": 1})
    reporter.report_error("m", "w", "told", ErrorSeverity.INFO)
    status = reporter.get_health_status()
    assert status == {
        "status": "error",
        "message": "1 errors and 1 warnings in the last 5 minutes; the last: m: bad",
        "recent_error_count": 3,
        "error_level_count": 1,
        "warning_level_count": 1,
    }
    error = next(each for each in reporter.get_errors() if each.error_id == first)
    assert error.to_dict() == {
        "error_id": first,
        "timestamp": 1100.0,
        "module_name": "m",
        "work_context": "w",
        "severity": "error",
        "message": "bad",
        "details": {"n": 1},
        "exception_type": "ValueError",
        "exception_traceback": "ValueError: bad\n",
    }
    now[0] += 300.5
    assert reporter.get_health_status()["status"] == "healthy"


def test_n79_the_oldest_errors_are_dropped() -> None:
    reporter = ErrorReporter(max_errors=10)
    for i in range(11):
        reporter.report_error("m", "w", str(i))
    assert [error.message for error in reporter.get_errors()] == [str(i) for i in range(1, 11)]
    with pytest.raises(ValueError, match="max_errors is 0"):
        ErrorReporter(0)


class Module(NexRLModule):
    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self._config = Config({"dump": {"path": str(path)}} if path else {})
        self.set_module_name("rollout_worker_0")


def test_n98_values_are_dumped_where_configured(tmp_path: Path, proxy: ActivityTrackerProxy) -> None:
    module = Module(tmp_path / "dumps")
    module.set_activity_tracker(proxy)
    proxy.set_training_step(3)
    path = module.easy_dump({"a": 1, "b": {2}}, ["re/ward", "x"])
    assert path == str(tmp_path / "dumps" / "step_3" / "rollout_worker_0-re_ward-x-1.txt")
    assert json.loads(Path(path).read_text()) == {"a": 1, "b": "{2}"}
    second = module.easy_dump([1], value_formatter=lambda value: f"<{value}>")
    assert second is not None
    assert Path(second).read_text() == "<[1]>"
    assert len(list((tmp_path / "dumps" / "step_3").iterdir())) == 2


def test_n98_a_dump_never_fails_a_step(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert Module(None).easy_dump("x") is None
    (tmp_path / "file").touch()
    assert Module(tmp_path / "file").easy_dump("x") is None
    module = Module(tmp_path)
    assert module.easy_dump("x", value_formatter=lambda _: str(1 / 0)) is None
    assert "division by zero" in caplog.text
    module.set_activity_tracker(ActivityTrackerProxy(Tracker()))
    module._activity_tracker.get_training_step = lambda: 1 // 0  # type: ignore[method-assign]
    assert module.easy_dump("x") == str(tmp_path / "step_-1" / "rollout_worker_0-2.txt")
    loop: list[Any] = []
    loop.append(loop)
    assert module.easy_dump(loop) is not None


class Wandb(types.ModuleType):
    """The package in little."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.inits: list[dict[str, Any]] = []
        self.calls: list[Any] = []
        self.axes: dict[str, str] = {}

    def init(self, **options: Any) -> Wandb:
        self.inits.append(options)
        return self

    def define_metric(self, name: str, step_metric: str = "") -> None:
        self.axes[name] = step_metric

    def log(self, data: Any) -> None:
        self.calls.append(data)

    def alert(self, **what: str) -> None:
        self.calls.append(what)

    def finish(self) -> None:
        self.calls.append("finish")

    def teardown(self) -> None:
        self.calls.append("teardown")


def test_n88_the_logger_of_wandb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = Wandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    service = {"inference_service": {"api_key": "secret", "url": "u"}}
    config = {"project_name": "p", "experiment_name": "e 1", "out": str(tmp_path), "service": service}
    logger = WandbLogger(Config(config))
    assert not logger.post("jsonl", {"data": {"a": 1}})
    assert not fake.inits
    assert logger.post("wandb", {"data": {"a": 1}, "step": 2, "id": "w/2"})
    assert logger.post("wandb", {"data": {"a": 0}, "step": 1})
    assert logger.post("wandb", {"content": "text", "step": 2})
    logger.stop()
    logger.stop()
    step = "training/global_step"
    assert fake.axes == {step: "", "*": step}
    assert fake.calls == [
        {"a": 1, step: 2},
        {"a": 0, step: 1},
        {"title": "message: e 1", "text": "text"},
        "finish",
        "teardown",
    ]
    (options,) = fake.inits
    assert (options["project"], options["name"], options["id"], options["resume"]) == (
        "p",
        "e 1",
        "p-e-1",
        "allow",
    )
    assert "secret" not in str(options)


def test_n88_without_wandb_the_error_has_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match="pip install wandb"):
        WandbLogger(Config()).post("wandb", {"data": {}})


OFFLINE = """
import glob, json, struct, sys
from pathlib import Path
from fray.rl.config import Config
from fray.rl.experiment import WandbLogger

out = sys.argv[1]
config = Config({"project_name": "p", "experiment_name": "e", "out": out, "api_key": "secret"})
logger = WandbLogger(config)
assert logger.post("wandb", {"data": {"loss": 0.5}, "step": 2, "id": "w/2"})
assert logger.post("wandb", {"data": {"loss": 0.75}, "step": 1, "id": "w/1"})
assert logger.post("wandb", {"content": "validated", "title": "note"})
logger.stop()

from wandb.proto import wandb_internal_pb2

def records(data):  # a log of LevelDB, behind a header of seven bytes
    at, whole = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or its last part
            yield whole
            whole = b""

found = {"history": [], "runs": [], "alerts": [], "text": ""}
for path in sorted(glob.glob(f"{out}/wandb/offline-run-*/*.wandb")):
    for data in records(Path(path).read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        found["text"] += str(record)
        if record.HasField("run"):
            found["runs"].append(record.run.run_id)
        if record.HasField("alert"):
            found["alerts"].append([record.alert.title, record.alert.text])
        if record.HasField("history"):
            items = {"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item}
            found["history"].append({k: v for k, v in items.items() if not k.startswith("_")})
print(json.dumps({**found, "text": "secret" in found["text"]}))
"""


@pytest.mark.skipif(not importlib.util.find_spec("wandb"), reason="the package wandb is not installed here")
def test_n88_the_real_package_of_wandb_offline(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    environ = {
        **kept,
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(tmp_path)],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    step = "training/global_step"
    assert found["history"] == [{"loss": 0.5, step: 2}, {"loss": 0.75, step: 1}]
    assert set(found["runs"]) == {"p-e"}
    assert found["alerts"] == [["note", "validated"]]
    assert not found["text"], "the key of a service was written"
