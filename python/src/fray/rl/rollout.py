"""The base of rollout workers: takes tasks, has them rolled out by `step`, and passes trajectories on.

Each task is leased, and the lease ends with what `step` returned. What a worker does when it was lost, or is
told to stop or to validate, is decided here; what a rollout is, by subclasses.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from fray.rl import references
from fray.rl.combined import Combined
from fray.rl.config import DEFAULT_LEASE_TTL, setting
from fray.rl.errors import ErrorSeverity
from fray.rl.execution import execute
from fray.rl.leases import LeasedLoader
from fray.rl.llm import (
    LLMServiceAwayError,
    LLMServiceClient,
    StoppedError,
    WeightSyncTimeoutError,
    client_of,
)
from fray.rl.module import NexRLModule
from fray.rl.nexrl_types import Trajectory
from fray.rl.reaching import reach
from fray.rl.slots import LINGER, Slot, Slots
from fray.rl.tracking import new_incarnation
from fray.rl.wire import Origin, Outcome, Task, TaskOutcome

_log = logging.getLogger("fray.rl")
_T = TypeVar("_T")

_IDLE = 0.01  # seconds that a step waits which finds no further task
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds before a task is rolled out again
_NOT_OF_THE_TASK: tuple[type[Exception], ...] = (
    WeightSyncTimeoutError,
    LLMServiceAwayError,
    *references.UNREACHABLE,
)
_BY_ID = (references.RemoteDataLoader, LeasedLoader)  # they know by its id an item that is added again
_JOIN = 25.0  # seconds that stop waits for the current task


class OverLengthError(ValueError):
    """A trajectory has more tokens than `max_length` allows."""


class _Put(NamedTuple):
    """A trajectory of a task on its way."""

    pool: Any
    trajectory: Trajectory
    origin: Origin


class BaseRolloutWorker(NexRLModule):
    """Rolls tasks out; subclasses define `step`.

    Keys of section `rollout_worker`, besides those of the subclass: `max_length` is the most tokens that a
    trajectory may have, of prompt and response, and `step_timeout` the seconds after which a task that is
    still being rolled out is another worker's, and this one unhealthy. Neither is limited by default.
    `concurrency` (1) is how many tasks are rolled out at once, each in a thread: `step` runs in all of them.
    """

    def __init__(self, config: Any) -> None:
        """Make the client of the inference service; tasks are rolled out after `run`."""
        super().__init__()
        self._config = config
        self._llm_client = self._make_client(config)
        self._max_length: int | None = setting(config, "max_length")
        self._step_timeout: float | None = setting(config, "step_timeout")
        self._lease_ttl = float(setting(config, "lease_ttl", DEFAULT_LEASE_TTL))
        self._incarnation = new_incarnation()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._validating = threading.Event()
        count = int(setting(config, "concurrency", 1))
        self._slots = Slots(count, lambda: self._module_name, self._incarnation, self._reach)
        self._puts: Combined[_Put, Outcome | Exception] = Combined(self._put_all, LINGER, self._to_put)
        self._ended = threading.Event()

    def _make_client(self, config: Any) -> LLMServiceClient:
        """Return the client that the worker asks for completions, see `client_of`."""
        return client_of(config)

    def set_module_references(
        self,
        trajectory_pool: Any,
        dataloader: Any,
        weight_sync_controller: Any,
        validate_dataloader: Any = None,
        validator: Any = None,
    ) -> None:
        """Set the roles that the worker works with: references, handles of actors, or local objects.

        Args:
            trajectory_pool: Takes trajectories. A list of handles is that of several pools.
            dataloader: Gives tasks.
            weight_sync_controller: Knows whether the weights of the model change.
            validate_dataloader: Gives tasks of validation.
            validator: Takes their trajectories.
        """
        key_list = setting(self._config, "key_list", ())
        self._trajectory_pool = references.trajectory_pool_of(trajectory_pool, key_list)
        self._dataloader = references.data_loader_of(dataloader)
        self._weight_sync_controller = references.weight_sync_controller_of(weight_sync_controller)
        self._validate_dataloader = references.data_loader_of(validate_dataloader)
        self._validator = references.validator_of(validator)
        if weight_sync_controller is not None:
            self._llm_client.set_weight_sync_controller(self._weight_sync_controller)

    @abstractmethod
    def step(self, task: dict[str, Any]) -> str | None:
        """Roll one task out.

        Args:
            task: The item, a copy of its own.

        Returns:
            What `_put_trajectory` returned: "success", "fail", or "re-rollout", after which the same task is
            rolled out again; None where no trajectory came of the task.
        """

    def run(self) -> None:
        """Begin to roll out tasks, in a thread. A worker that does so already goes on.

        Raises:
            RuntimeError: module references or activity tracker were not set, or the task has not ended yet
                during which it was stopped.
        """
        if any(thread.is_alive() for thread in self._threads):
            if self._stopping.is_set():
                raise RuntimeError(f"{self._module_name} still ends its last task; run it again later")
            return
        if not hasattr(self, "_dataloader"):
            raise RuntimeError(f"{self._module_name}: call set_module_references before run")
        if self._activity_tracker is None:
            raise RuntimeError(f"{self._module_name}: call set_activity_tracker before run")
        self._stopping.clear()
        self._llm_client.begin()
        ended = self._ended = threading.Event()
        name = self._module_name
        self._threads = [
            threading.Thread(target=self._work, args=[slot, ended], name=f"{name} work {i}", daemon=True)
            for i, slot in enumerate(self._slots.all)
        ]
        renewing = threading.Thread(target=self._renew, args=[ended], name=f"{name} renew", daemon=True)
        for thread in (*self._threads, renewing):
            thread.start()

    def stop(self) -> None:
        """Roll out no more tasks; returns when the current one has ended, or is put back.

        A task that waits for weights, or for another try at the inference service, is put back at once.
        """
        self._stopping.set()
        self._llm_client.stop()
        self._slots.interrupt()
        until = time.monotonic() + _JOIN
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))

    def begin_validate(self) -> None:
        """Take tasks of validation from now on; the current task goes where it would have gone."""
        self._validating.set()
        self._slots.interrupt()

    def end_validate(self) -> None:
        """Take tasks of training again."""
        self._validating.clear()
        self._slots.interrupt()

    def health_check(self) -> bool:
        """Return whether tasks are rolled out, after `run`, and none for longer than `step_timeout`."""
        if not self._threads or self._stopping.is_set():
            return True
        return all(thread.is_alive() for thread in self._threads) and not self._hangs()

    @property
    def _task(self) -> Task | None:
        """The task that this thread rolls out."""
        return self._slots.own.task

    @property
    def _thread(self) -> threading.Thread | None:
        """The thread of the first task, after `run`."""
        return self._threads[0] if self._threads else None

    @property
    def _is_running_validate(self) -> bool:
        """Whether the current task, or else the next one, is of validation."""
        if self._task is not None:
            return self._task.lease.route == "validate"
        return self._validating.is_set()

    # What subclasses use.

    def _put_trajectory(self, trajectory: Trajectory) -> Outcome:
        """Pass a trajectory on, to where its task was routed when it was leased.

        The keys that trajectories are grouped by, and `group_id` and `run_id`, are added from the task where
        the trajectory lacks them.

        Returns:
            "success" once it is stored, "fail" if it never will be, "re-rollout" while the weights of its
            model change.

        Raises:
            OverLengthError: it has more than `max_length` tokens, see `_truncate`.
            PayloadError: a field cannot be packed.
        """
        task = self._task
        if task is not None and task.lease.route == "validate":
            return self._put_validate_trajectory(trajectory)
        return self._put(self._trajectory_pool, trajectory)

    def _put_validate_trajectory(self, trajectory: Trajectory) -> Outcome:
        """Pass a trajectory of validation on. Returns and raises as `_put_trajectory` does."""
        return self._put(self._validator, trajectory)

    def _truncate(self, trajectory: Trajectory) -> Trajectory:
        """Return a trajectory of at most `max_length` tokens.

        One with more loses the last ones, in `tokens` and all lists and arrays of the same length. As its end
        is not known, its `reward` is 0, and `truncated` is true.
        """
        tokens = trajectory.get("tokens")
        limit = self._max_length
        if limit is None or tokens is None or len(tokens) <= limit:
            return trajectory
        length = len(tokens)

        def cut(value: Any) -> Any:
            sized = hasattr(value, "__len__") and not isinstance(value, (str, bytes, dict))
            return value[:limit] if sized and len(value) == length else value

        return {key: cut(value) for key, value in trajectory.items()} | {"reward": 0.0, "truncated": True}

    def _get_rollout_task(self) -> dict[str, Any] | None:
        """Return the next task, which this worker has leased then; None if there is none now.

        It waits a moment then, so that asking again does no harm. The task that was rolled out has ended.
        """
        task = self._next_within(self._chosen_loader)
        if task is None:
            self._stopping.wait(_IDLE)
            return None
        return copy.deepcopy(task.item)

    def _get_validate_task(self) -> dict[str, Any] | None:
        """Return the task of validation that is being rolled out, else lease one; None: there is none now."""
        task = self._task
        if task is None or task.lease.route != "validate":
            task = self._next_within(lambda: self._validate_dataloader)
        return None if task is None else copy.deepcopy(task.item)

    def _put_rollout_task(self, task: dict[str, Any]) -> bool:
        """Return a task, to be rolled out by any worker; whether that was possible.

        A task that this worker has leased comes next; another one is added as the next item.
        """
        current = self._task
        if current is not None and _same(current.item, task):
            return self._put_back(current)
        known = (uuid.uuid4().hex,) if isinstance(self._dataloader, _BY_ID) else ()
        self._reach(lambda: self._dataloader.add_item_front(task, *known) or True)
        return True

    # The loop.

    def _work(self, slot: Slot, ended: threading.Event) -> None:
        self._slots.begin(slot)
        try:
            while not self._stopping.is_set():
                try:
                    task = self._slots.next(slot, self._chosen_loader)
                except Exception as err:
                    self._report("taking a task", err)
                    self._stopping.wait(_LONGEST_PAUSE)
                    continue
                if task is not None:
                    self._roll_out(task)
            try:
                self._slots.end(slot)
            except Exception as err:
                self._report("ending a task", err)
        finally:
            if not self._stopping.is_set() or not self._slots.rolling:
                ended.set()

    def _roll_out(self, task: Task) -> None:
        """Roll a task out until it has an outcome. Its lease ends as the next task is taken."""
        pause, slot = _FIRST_PAUSE, self._slots.own
        while True:
            self._take(task)
            outcome = self._stepped(task)
            if slot.task is None:  # the step ended it by itself
                return
            task = slot.task  # or took another one instead
            if outcome is not None and outcome != "re-rollout":
                slot.leave(outcome)
                return
            if outcome is None or self._stopping.wait(pause) or self._is_misplaced(task):
                self._return(task)
                return
            pause = min(_LONGEST_PAUSE, pause * 2)

    def _stepped(self, task: Task) -> TaskOutcome | str | None:
        """Return what a step makes of a task: how it ends, "re-rollout", or None: it is to be put back."""
        try:
            result = self.step(copy.deepcopy(task.item))
        except StoppedError:
            return None
        except _NOT_OF_THE_TASK as err:
            # It is not the task's fault, and nothing is lost.
            self._report("rolling out a task, which is put back", err, ErrorSeverity.WARNING)
            self._stopping.wait(_LONGEST_PAUSE)
            return None
        except Exception as err:
            self._report("rolling out a task", err)
            return "fail"
        if result is None:
            return "none"
        if result not in ("success", "fail", "re-rollout"):
            wanted = '"success", "fail", "re-rollout" or None'
            self._report("rolling out a task", ValueError(f"step returned {result!r}, want {wanted}"))
            return "fail"
        return result

    def _is_misplaced(self, task: Task) -> bool:
        """Return whether a task of training is in the way of validation, whose weights stay as they are."""
        return task.lease.route == "train" and self._validating.is_set()

    def _chosen_loader(self) -> Any:
        return self._validate_dataloader if self._validating.is_set() else self._dataloader

    def _next_within(self, choose: Callable[[], Any]) -> Task | None:
        """Lease another task within a step: the one that was rolled out has ended."""
        slot = self._slots.own
        slot.leave("success" if slot.stored else "none")
        task = self._slots.take(slot, choose)
        if task is not None:
            self._take(task)
        return task

    def _take(self, task: Task) -> None:
        self._slots.own.take(task)
        self._llm_client.begin_task(task.lease.task_id)

    def _return(self, task: Task) -> None:
        """Put a task back. Where that is not possible it comes to this worker again, as one that it lost."""
        try:
            self._put_back(task)
        except Exception as err:
            self._report("putting a task back", err)
            self._stopping.wait(_LONGEST_PAUSE)

    def _put_back(self, task: Task) -> bool:
        slot = self._slots.own
        try:
            return bool(self._reach(lambda: bool(self._loader_of(task).put_back(task.lease.id))))
        finally:
            self._slots.forget(task)
            slot.task = None

    def _loader_of(self, task: Task) -> Any:
        return self._validate_dataloader if task.lease.route == "validate" else self._dataloader

    def _put(self, pool: Any, trajectory: Trajectory) -> Outcome:
        task = self._task
        if task is not None:
            for key in ("group_id", "run_id", *setting(self._config, "key_list", ())):
                if key in task.item:
                    trajectory.setdefault(key, task.item[key])
        outcome: Outcome
        tokens = trajectory.get("tokens")
        if self._max_length is not None and tokens is not None and len(tokens) > self._max_length:
            raise OverLengthError(
                f"the trajectory has {len(tokens)} tokens, and max_length is {self._max_length}; "
                "call self._truncate(trajectory) before it is put"
            )
        if isinstance(pool, (references.TrajectoryPool, references.RemoteValidator)):
            origin = None if task is None else Origin.of_lease(task.lease, self._llm_client.version)
            if origin is None:  # it cannot be recognized, so that it is put once at most
                outcome = pool.put_trajectory(trajectory)
            else:
                answer = self._puts.ask(_Put(pool, trajectory, origin))
                if isinstance(answer, Exception):
                    raise answer
                outcome = answer
        else:
            outcome = execute(pool.put_trajectory, trajectory)
        self._slots.own.stored = outcome == "success"
        return outcome

    def _put_all(self, puts: list[_Put]) -> list[Outcome | Exception]:
        """Put what slots have ready at the same time."""
        answers: dict[int, Outcome | Exception] = {}
        for pool in {id(each.pool): each.pool for each in puts}.values():
            of = [each for each in puts if each.pool is pool]
            found = self._reach(lambda: pool.put_trajectories([each[1:] for each in of]))  # noqa: B023
            if found is None:
                stopped = StoppedError("the worker was stopped before its trajectory was stored")
                found = [stopped] * len(of)
            answers.update(zip(map(id, of), found, strict=True))
        return [answers[id(each)] for each in puts]

    def _to_put(self) -> int:
        """Return how many slots may put something soon."""
        return max(0, self._slots.rolling - len(self._puts)) if len(self._slots.all) > 1 else 0

    def _reach(self, call: Callable[[], _T]) -> _T | None:
        """Make a call that may be repeated until its actor answers; None: the worker is to stop before."""
        return reach(call, self._stopping, self._module_name)

    def _renew(self, ended: threading.Event) -> None:
        """Keep the leases while tasks are rolled out."""
        while not ended.wait(self._lease_ttl / 3):
            if self._hangs():
                continue
            for loader in (self._dataloader, self._validate_dataloader):
                if loader is not None:
                    try:
                        loader.renew(self._module_name, self._incarnation)
                    except Exception as err:
                        _log.warning("%s: leases could not be renewed: %s", self._module_name, err)

    def _hangs(self) -> bool:
        limit, now = self._step_timeout, time.monotonic()
        return limit is not None and any(
            s.task is not None and now - s.since > limit for s in self._slots.all
        )

    def _report(self, work: str, err: Exception, severity: ErrorSeverity = ErrorSeverity.ERROR) -> None:
        _log.warning("%s: %s: %s", self._module_name, work, err, exc_info=err)
        try:
            self._activity_tracker.report_exception(self._module_name, work, err, severity)
        except Exception as again:
            _log.warning("%s: the error could not be reported: %s", self._module_name, again)


def _same(item: dict[str, Any], task: dict[str, Any]) -> bool:
    names = ("group_id", "run_id", "index")
    return item is task or all(item.get(name) == task.get(name) for name in names)
