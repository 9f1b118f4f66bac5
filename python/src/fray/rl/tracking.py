"""What modules report to the run's activity tracker: work that begins and ends, errors, steps and metrics."""

from __future__ import annotations

import logging
import secrets
import threading
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from fray.rl.errors import ErrorSeverity, describe
from fray.rl.execution import actor_method

_log = logging.getLogger("fray.rl")


def new_incarnation() -> str:
    """Return a name of one life of a module: work of an earlier life has ended with it."""
    return secrets.token_hex(8)


class ActivityTrackerProxy:
    """Forwards to the run's activity tracker: an actor, or an object with the same methods in this process.

    with self._activity_tracker.track("MyModule", "processing_batch"):
        process(batch)
    """

    def __init__(self, central_tracker: Any, incarnation: str = "") -> None:
        """Use a tracker.

        Args:
            central_tracker: A handle of the actor, or the object.
            incarnation: The life of the modules that report by this proxy; "": a new one.
        """
        self._central = central_tracker
        self.incarnation = incarnation or new_incarnation()
        """Work of these modules ends for the tracker when it learns that this life is over."""
        self._remote = actor_method(central_tracker.is_quiescent) is not None
        # A start has a token that is chosen here, so that a second one is not more than the first.
        self._again = central_tracker.options(idempotent=True) if self._remote else central_tracker
        self._lock = threading.Lock()
        self._name, self._count = secrets.token_hex(8), 0
        self._open: dict[str, tuple[str, str]] = {}

    def track(self, module: str, work: str, auto_report_errors: bool = True) -> _ProxyTrackCtx:
        """Return a context in which the module works; an exception in it is reported and raised again.

        Args:
            module: The module that works.
            work: What it does, for people.
            auto_report_errors: Whether exceptions are reported.
        """
        return _ProxyTrackCtx(self, module, work, auto_report_errors)

    def start(self, module: str, work: str) -> str:
        """Note that work begins, and return its token, which is unique."""
        if not self._remote:
            return str(self._central.start(module, work))
        with self._lock:
            self._count += 1
            token = self._token(self._count)
            self._open[token] = module, work
        try:
            self._again.start(module, work, self.incarnation, token)
        except BaseException:  # if it has begun all the same, it ends with the next heartbeat
            self._open.pop(token, None)
            raise
        return token

    def end(self, token: str) -> None:
        """Note that work has ended. Unknown tokens, and those that have ended, change nothing."""
        self._open.pop(token, None)
        self._again.end(token)

    def beat(self, module: str) -> None:
        """Note that the module lives, and what it does.

        A tracker that was restarted does not know that, nor one that did not get the end of something.
        """
        with self._lock:
            doing = {token: work for token, (of, work) in dict(self._open).items() if of == module}
            following = self._token(self._count + 1)
        self._again.beat(module, self.incarnation, doing, following)

    def is_quiescent(self) -> bool:
        """Return whether no module works."""
        return bool(self._again.is_quiescent())

    def is_rollout_worker_quiescent(self) -> bool:
        """Return whether no registered rollout worker works and no task is leased."""
        return bool(self._again.is_rollout_worker_quiescent())

    def wait_quiescent(self, timeout: float | None = None) -> bool:
        """Wait until no module works; return False when `timeout` seconds are over before."""
        return bool(self._again.wait_quiescent(timeout))

    def get_running_status_summary(self) -> str:
        """Return what is being done, for people: module, work and age."""
        return str(self._again.get_running_status_summary())

    def register_module(self, module_name: str, module_ref: Any, is_rollout_worker: bool = False) -> None:
        """Have a module's health checked. `module_ref` is it, a handle of it or its address."""
        if self._remote:
            module_ref = module_ref if isinstance(module_ref, str) else getattr(module_ref, "address", "")
        self._again.register_module(module_name, module_ref, is_rollout_worker)

    def check_module_liveness(self, timeout: float = 5.0) -> bool:
        """Return whether all registered modules answer within so many seconds."""
        return bool(self._again.check_module_liveness(timeout))

    def report_exception(
        self, module: str, work: str, exception: BaseException, severity: ErrorSeverity | None = None
    ) -> str:
        """Report an exception with its traceback, as an error if no severity is given. Returns its id."""
        if not self._remote:
            return str(self._again.report_exception(module, work, exception, severity))
        level = (severity or ErrorSeverity.ERROR).value
        return str(self._again.report_exception(module, work, describe(exception), level))

    def get_error_health_status(self) -> dict[str, Any]:
        """Return the health of the run, see ErrorReporter.get_health_status."""
        return dict(self._again.get_error_health_status())

    def set_training_step(self, step: int) -> None:
        """Set the run's training step."""
        self._again.set_training_step(step)

    def get_training_step(self) -> int:
        """Return the run's training step."""
        return int(self._again.get_training_step())

    def experiment_logger_post(self, backend: str, post_id: str = "", **kwargs: Any) -> None:
        """Post metrics or a message to a logger of the run.

        Args:
            backend: "console", "jsonl", "tensorboard" or "wandb".
            post_id: A post of an id that the logger has is not written again; "": a new one.
            **kwargs: `data`, a dictionary of numbers, and `step`; or `content` and `title`, a message.
        """
        if not self._remote:
            self._again.experiment_logger_post(backend, **kwargs)
            return
        if isinstance(data := kwargs.get("data"), Mapping):
            kwargs["data"] = {str(key): _plain(value) for key, value in data.items()}
        # The id lets the call be made again whose answer is lost.
        self._again.experiment_logger_post(backend, {**kwargs, "id": post_id or uuid.uuid4().hex})

    def _token(self, number: int) -> str:
        return f"{self._name}-{number}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as the tracker: in another process modules have another life."""
        return ActivityTrackerProxy, (self._central,)


def _plain(value: Any) -> Any:
    """Return the number of a scalar of numpy or torch."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "size", 1) == 1 else value


class _ProxyTrackCtx:
    """Work of a module, from its beginning to its end."""

    def __init__(self, proxy: ActivityTrackerProxy, module: str, work: str, report: bool) -> None:
        self._proxy, self._module, self._work, self._report = proxy, module, work, report
        self._token = ""

    def __enter__(self) -> _ProxyTrackCtx:
        self._token = self._proxy.start(self._module, self._work)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Report what was raised, if anything, and note the end. Neither hides the exception."""
        if isinstance(error, Exception) and self._report:
            try:
                self._proxy.report_exception(self._module, self._work, error)
            except Exception as err:
                _log.warning(
                    "%s: %s failed, and that could not be reported: %s", self._module, self._work, err
                )
        try:
            self._proxy.end(self._token)
        except Exception as err:  # the token expires with this life of the module
            _log.warning("%s: the end of %s could not be noted: %s", self._module, self._work, err)
