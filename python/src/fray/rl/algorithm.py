"""The base of algorithm processors: takes batches of trajectories and makes batches for training of them."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from fray.rl import references
from fray.rl.batch_states import BatchStates, ReplacedError, State, as_json, state_in, with_state
from fray.rl.combined import LongPoll
from fray.rl.config import setting
from fray.rl.module import NexRLModule
from fray.rl.nexrl_types import Batch
from fray.rl.reaching import reach
from fray.rl.wire import PoolBatch

_log = logging.getLogger("fray.rl")

DEFAULT_UPDATE_FN = "update_actor"
_IDLE = 0.05  # seconds between two questions for a batch that were answered at once
_LONG = 5.0  # seconds of one call that waits for a batch
_LONGEST_PAUSE = 1.0  # seconds before what failed is tried again
_JOIN = 25.0  # seconds that stop waits for the current batch
_TRIES = 3  # of a batch for which _fit raises


class NoBatchError(RuntimeError):
    """The module was stopped before there was a batch."""


class StoppingError(RuntimeError):
    """The module is to stop, and an actor is away: the batch comes again in its next life."""


class DroppedBatchError(RuntimeError):
    """A batch was given up: `_fit` has raised for it again and again."""


class BaseAlgorithmProcessor(NexRLModule):
    """Processes batches of trajectories; subclasses define `_fit`.

    Keys of section `algorithm`, besides those of the subclass: `batch_size`, as the pool's if it is missing;
    `model_tag`, of any model if it is missing; `update_fn`, which `_fit` gets.

    A batch stays the pool's until `_fit` has returned. When the process is lost before, the same batch comes
    again, and what it had put by then is not queued twice.

    What a subclass carries from one batch to the next it gives by `_state`, and takes by `_restore`. Then it
    is kept below `out`, and in checkpoints, and each batch counts once in it.
    """

    def __init__(self, config: Any) -> None:
        """Keep the configuration; batches are processed after `run`."""
        super().__init__()
        self._config = config
        self._batch_size: int | None = setting(config, "batch_size")
        self._model_tag: str | None = setting(config, "model_tag")
        self._update_fn: str = setting(config, "update_fn", DEFAULT_UPDATE_FN)
        self._stopping = threading.Event()
        self._poll = LongPoll()
        self._thread: threading.Thread | None = None
        self._taken: PoolBatch | None = None
        self._put = 0
        self._states: BatchStates | None = None

    def set_module_references(self, trajectory_pool: Any, train_batch_pool: Any) -> None:
        """Set where batches come from and go to: references, handles of actors, or local objects."""
        self._trajectory_pool = references.trajectory_pool_of(trajectory_pool)
        self._train_batch_pool = references.train_batch_pool_of(train_batch_pool)

    @abstractmethod
    def _fit(self, batch: Batch, update_fn: str) -> None:
        """Make a batch for training of trajectories, and pass it on by `_put_batch`.

        Args:
            batch: The trajectories, by field.
            update_fn: What training is to do with them.
        """

    def run(self) -> None:
        """Begin to process batches, in a thread. A processor that does so already goes on.

        Raises:
            RuntimeError: module references or activity tracker were not set, or the batch is not done yet
                during which it was stopped.
            CheckpointError: the state that a former process has left cannot be read.
        """
        if self._thread is not None and self._thread.is_alive():
            if self._stopping.is_set():
                raise RuntimeError(f"{self._module_name} still ends its last batch; run it again later")
            return
        if not hasattr(self, "_trajectory_pool"):
            raise RuntimeError(f"{self._module_name}: call set_module_references before run")
        if self._activity_tracker is None:
            raise RuntimeError(f"{self._module_name}: call set_activity_tracker before run")
        _ = self._kept  # what cannot be read is an error of this call
        self._stopping.clear()
        self._thread = threading.Thread(target=self._work, name=f"{self._module_name} batches", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Process no more batches; returns when the current one is done."""
        self._stopping.set()
        self._poll.interrupt()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN)

    def load_checkpoint(self, path: str) -> None:
        """Go back to the state that a checkpoint has of this processor; "": to that before the first batch.

        It is called while the processor does not run. A processor without state does nothing.

        Raises:
            CheckpointError: there is no such checkpoint here, or what it has cannot be read.
        """
        if not self._has_state:
            return
        state = state_in(path, self._module_name) if path else {}
        if path and not state:
            _log.info("%s: %s has no state of it; it begins anew", self._module_name, path)
        self._kept.reset(state)

    def health_check(self) -> bool:
        """Return whether batches are processed, after `run`."""
        return self._thread is None or self._stopping.is_set() or self._thread.is_alive()

    def _state(self) -> State:
        """Return what the next batch depends on besides itself, as JSON has it; {}: nothing (the default)."""
        return {}

    def _restore(self, state: State) -> None:
        """Go back to a state that `_state` has returned; {}: to that of a new processor."""

    @property
    def _has_state(self) -> bool:
        """Whether batches depend on earlier ones: a subclass defines `_state`."""
        return type(self)._state is not BaseAlgorithmProcessor._state

    def _get_batch(self, batch_size: int | None = None) -> Batch:
        """Return the next batch of trajectories, as soon as there is one.

        Args:
            batch_size: How many; None: as the pool is configured.

        Raises:
            NoBatchError: the processor was stopped before.
        """
        while not self._stopping.is_set():
            began = time.monotonic()
            found = self._take(batch_size)
            if found is not None:
                return found
            self._stopping.wait(max(0.0, began + _IDLE - time.monotonic()))
        raise NoBatchError(f"{self._module_name} was stopped before there was a batch")

    def _put_batch(self, batch: Batch, update_fn: str) -> bool:
        """Queue a batch for training; return whether it is queued. It carries what `_state` returns now.

        Raises:
            StoppingError: the processor is to stop, and the pool is away. Let it pass.
        """
        batch = with_state(batch, self._module_name, self._state())
        if not isinstance(self._train_batch_pool, references.TrainBatchPool):
            return bool(self._train_batch_pool.put_batch(batch, update_fn))
        pool: references.TrainBatchPool = self._train_batch_pool
        source = self._source
        # The same each time that the source is processed, so that no batch is trained on twice.
        known = f"{source}/{self._put}" if source else ""
        self._put += 1
        queued = self._reach(lambda: pool.put_batch(batch, update_fn, known, source, self._tasks))
        if queued is None:
            raise StoppingError(f"{self._module_name} was stopped before its batch was queued")
        return bool(queued)

    def _post_metrics(self, metrics: dict[str, float]) -> None:
        """Post metrics of the present batch to the run's loggers, once however often it is processed."""
        if self._activity_tracker is None:
            return
        backends = setting(self._config, "logger.backend", [])
        source = self._source
        for backend in [backends] if isinstance(backends, str) else backends:
            known = f"{self._module_name}/{source}" if source else ""
            self._reach(
                lambda to=backend, known=known: self._activity_tracker.experiment_logger_post(  # type: ignore[misc]
                    backend=to, post_id=known, data=metrics
                )
            )

    def _work(self) -> None:
        self._release()
        while not self._stopping.is_set():
            try:
                batch = self._get_batch(self._batch_size)
            except NoBatchError:
                return
            except Exception as err:
                self._report("taking a batch", err)
                self._stopping.wait(_LONGEST_PAUSE)
                continue
            self._process(batch)

    def _process(self, batch: Batch) -> None:
        """Have a batch processed, and acknowledge it; after some exceptions of `_fit` it is given up.

        It is acknowledged then, too: the pool is empty again, and a run that waits for the batch's update is
        released by its controller.
        """
        before, life = self._kept.begin(self._source)
        for _ in range(_TRIES):
            try:
                after = self._attempt(batch, before)
                break
            except StoppingError:
                return  # it is not acknowledged, and comes again
            except Exception as err:
                last = err
                if self._stopping.wait(_LONGEST_PAUSE):
                    return
        else:
            self._report("dropping a batch", self._dropped(batch, last))
            after = before
        if self._keep(before, after, life):
            self._acknowledge()

    def _attempt(self, batch: Batch, before: State) -> State:
        """Have `_fit` process a batch once, and return the state after it. Only its exceptions pass."""
        self._put, token = 0, ""
        # Without a tracker it goes on: the batch is not acknowledged, which shows that the run is not idle.
        with contextlib.suppress(*references.UNREACHABLE):
            token = self._activity_tracker.start(self._module_name, "processing a batch")
        try:
            self._restore(before)
            self._fit(batch.copy(), self._update_fn)
            return as_json(self._state())
        except StoppingError:
            raise
        except Exception as err:
            self._report("processing a batch", err)
            raise
        finally:
            if token:
                with contextlib.suppress(Exception):  # the token expires with this life of the module
                    self._activity_tracker.end(token)

    @property
    def _kept(self) -> BatchStates:
        """The states before and after the last batch, which a former process may have left."""
        if self._states is None:
            out = str(setting(self._config, "out", ""))
            # A pool of this process is lost with it, and so are its batches' ids.
            pool = getattr(self, "_trajectory_pool", None)
            survives = out and self._has_state and isinstance(pool, references.TrajectoryPool)
            self._states = BatchStates(f"{out}/algorithm" if survives else "", self._module_name)
        return self._states

    @property
    def _source(self) -> str:
        """The id of the present batch, "" if the pool is an object of this process."""
        return self._taken.id if self._taken is not None else ""

    @property
    def _tasks(self) -> list[str]:
        """The ids of the tasks of the present batch, each once."""
        headers = self._taken.headers if self._taken is not None else []
        return list(dict.fromkeys(str(each["task_id"]) for each in headers if each.get("task_id")))

    def _keep(self, before: State, after: State, life: int) -> bool:
        """Keep the state after the present batch; return whether that is done, and it may be acknowledged."""
        while True:
            try:
                self._kept.keep(self._source, before, after, life)
            except ReplacedError as err:
                _log.info("%s: %s", self._module_name, err)
                return False
            except OSError as err:
                self._report("keeping the state after a batch", err)
                if self._stopping.wait(_LONGEST_PAUSE):
                    return False
            else:
                return True

    def _dropped(self, batch: Batch, err: Exception) -> DroppedBatchError:
        known = f"batch {self._source}" if self._source else "a batch"
        dropped = DroppedBatchError(
            f"{known} of {len(batch)} trajectories was dropped: _fit has raised {_TRIES} times, "
            f"at last {err!r}"
        )
        dropped.__cause__ = err
        return dropped

    def _take(self, batch_size: int | None) -> Batch | None:
        pool = self._trajectory_pool
        if not isinstance(pool, references.TrajectoryPool):
            found: Batch | None = pool.get_batch(batch_size, self._model_tag)
            return found
        self._taken = self._reach(self._take_of(pool, batch_size))
        return None if self._taken is None else self._taken.batch

    def _take_of(
        self, pool: references.TrajectoryPool, batch_size: int | None
    ) -> Callable[[], PoolBatch | None]:
        def take() -> PoolBatch | None:
            wait = 0.0 if self._stopping.is_set() else _LONG
            return pool.take(batch_size, self._model_tag, self._module_name, wait, self._poll)

        return take

    def _acknowledge(self) -> None:
        """Acknowledge the present batch, as often as it takes: else the pool would give it again."""
        taken, self._taken = self._taken, None
        pool = self._trajectory_pool
        while taken is not None and isinstance(pool, references.TrajectoryPool):
            try:
                self._reach(lambda: pool.ack(taken.id))
                return
            except Exception as err:
                self._report("acknowledging a batch", err)
                if self._stopping.wait(_LONGEST_PAUSE):
                    return

    def _release(self) -> None:
        """Have batches come again that an earlier life of this processor took."""
        pool = self._trajectory_pool
        if isinstance(pool, references.TrajectoryPool):
            self._reach(lambda: pool.release_consumer(self._module_name))

    def _reach(self, call: Callable[[], Any]) -> Any:
        """Make a call that may be repeated until its actor answers; None: the processor is to stop before."""
        return reach(call, self._stopping, self._module_name)

    def _report(self, work: str, err: Exception) -> None:
        _log.warning("%s: %s: %s", self._module_name, work, err, exc_info=err)
        with contextlib.suppress(Exception):
            self._activity_tracker.report_exception(self._module_name, work, err)
