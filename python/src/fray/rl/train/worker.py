"""The train worker: it takes batches in order, has them trained on, and keeps checkpoints.

The batch of a step is taken by the consumer "NAME/STEP", and acknowledged once a checkpoint has its update
(at once, where save_freq is 0). So a worker or a service that is lost goes back to the last checkpoint and
gets the batches since then again, in their order, with their ids: it makes the same updates. Where save_freq
is 0 only a worker that is lost goes on, with the model that the service has; a service that is lost has lost
its updates, and training fails instead of beginning again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fray.rl.batch_states import STATES, State, states_in, take_state
from fray.rl.combined import LongPoll
from fray.rl.config import json_like, setting
from fray.rl.execution import execute
from fray.rl.module import NexRLModule
from fray.rl.nexrl_types import Batch
from fray.rl.references import (
    RESOLVE_TIMEOUT,
    UNREACHABLE,
    TrainBatchPool,
    WeightSyncController,
    train_batch_pool_of,
    weight_sync_controller_of,
)
from fray.rl.train import checkpoints
from fray.rl.train.checkpoints import CheckpointError
from fray.rl.train.client import Trained, TrainServiceClient, create_train_service_client
from fray.rl.train.service import TrainOutcome

BATCHES = "batches.json"
"""The file of a checkpoint that has the ids of the batches since the checkpoint before it."""
POLL = 0.01
"""Seconds between two requests for a batch that were answered at once."""
WAIT = 5.0
"""Seconds of one request that waits for a batch."""
JOIN = 25.0
"""Seconds that `stop` waits for the present batch."""
AGAIN = 0.2
"""Seconds between two calls of an actor that is away."""
SETTLE_AFTER = 1.0
"""Seconds between two looks, without a batch, whether more can come."""

T = TypeVar("T")
_log = logging.getLogger("fray.rl")


class Taken(NamedTuple):
    """A batch that is the pool's until it is acknowledged."""

    id: str
    batch: Batch


class Stopping(BaseException):  # no failure, so that it is reported as none
    """The worker was asked to stop while it waited."""


class TrainWorker(NexRLModule):
    """Trains the model of one tag on the batches of that tag."""

    def __init__(self, config: Any, client: TrainServiceClient | None = None) -> None:
        """Make a worker that does not run yet.

        Args:
            config: the section train_worker, with `total_train_steps` (1000), `checkpoint_path`,
                `sync_weight_path`, `save_freq` (0: none, see above), `remove_previous_ckpt`; `out`, in which
                paths that are missing are; `seed`; and `train_service`, the section of its service with
                `backend` and `model_tag`.
            client: of its train service; None: as `train_service.backend` says.
        """
        super().__init__()
        self._config = config
        self._service_config = {
            "seed": int(setting(config, "seed", 0)),
            **json_like(setting(config, "train_service", {})),
        }
        self._model_tag = str(setting(config, "train_service.model_tag", "default"))
        self._total = int(setting(config, "total_train_steps", 1000))
        self._save_freq = int(setting(config, "save_freq", 0))
        self._folder = _below(config, "checkpoint_path", "checkpoints")
        self._sync_path = _below(config, "sync_weight_path", "sync_weights")
        self._client = client
        self._pool: Any = None
        self._weights: Any = None
        self._controller: Any = None
        self._loader: Any = None
        self._trajectories: Any = None
        self._train_step = 0
        self._loaded = ""  # the checkpoint to go back to; "": the model before its first update
        self._unacknowledged: list[str] = []  # batches whose updates no checkpoint has
        self._algorithms: dict[str, State] = {}  # of algorithm processors, as of the last update
        self._notified = 0  # the last step that the weight sync controller knows of
        self._initialized = False  # in this process; else it goes on where an earlier one was
        self._took_over = False  # updates of an earlier process, whose last batch may not be acknowledged
        self._stop_event = threading.Event()
        self._poll = LongPoll()
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None

    def set_module_references(
        self,
        train_batch_pool: Any,
        weight_sync_controller: Any,
        controller: Any = None,
        train_service: Any = None,
        data_loader: Any = None,
        trajectory_pool: Any = None,
    ) -> None:
        """Set what it works with: objects of this process, or handles of actors.

        Args:
            train_batch_pool: where its batches are.
            weight_sync_controller: learns of each update.
            controller: adds what belongs to the run to each checkpoint; None: it has the step only.
            train_service: the actor of the service, where `backend` is "actor".
            data_loader: with `trajectory_pool` shows when no batch can come any more; then a checkpoint is
                written, so that the last batches are acknowledged. None: they are at the last step.
            trajectory_pool: see `data_loader`.
        """
        self._loader, self._trajectories = data_loader, trajectory_pool
        self._pool = train_batch_pool_of(train_batch_pool)
        self._weights = weight_sync_controller_of(weight_sync_controller)
        self._controller = controller
        if self._client is None:
            self._client = create_train_service_client(self._service_config, train_service)

    def initialize_workers(self) -> None:
        """Have the service build its model, and remove what interrupted checkpoints have left."""
        if self._folder:
            checkpoints.clean(self._folder)
        self._call(lambda: self._service.initialize(self._service_config))
        self._initialized = True

    def load_checkpoint(self, path: str) -> int:
        """Put the model and the step into the state of a checkpoint; "": before the first update.

        A worker of a new process, whose service has updates that no checkpoint will have, takes these over
        instead.

        Returns its step.

        Raises:
            CheckpointError: there is no such checkpoint.
        """
        if path and not Path(path).is_dir():
            raise CheckpointError(f"there is no checkpoint {path}")
        if self._save_freq <= 0 and not (self._initialized or self._train_step):
            step = self._call(self._service.get_step)
            if step >= 0:
                self._train_step, self._loaded, self._took_over = step, path, True
                return step

        def load() -> int:
            self._service.initialize(self._service_config)
            return self._service.load_checkpoint(path)

        self._train_step = self._call(load)
        self._loaded = path
        self._algorithms = states_in(path) if path else {}
        # It may have been interrupted between its checkpoint and what followed.
        self._unacknowledged = list(checkpoints.read_json(Path(path) / BATCHES, [])) if path else []
        self._acknowledge()
        if path and Path(path) == Path(self._folder) / checkpoints.checkpoint_name(self._train_step):
            self._remove_previous(self._train_step)
        return self._train_step

    def save_sync_weights(self, path: str = "") -> int:
        """Write the weights for the inference services, to `sync_weight_path` unless a path is given.

        Returns their version, the number of updates.
        """
        target = path or self._sync_path
        return self._call(lambda: self._service.save_weights(target)) if target else self._train_step

    def run(self) -> None:
        """Begin to train, in a thread; `stop` ends it.

        Raises:
            RuntimeError: `set_module_references` was not called, or it runs already.
        """
        if self._pool is None or self._weights is None:
            raise RuntimeError("the train worker has no train batch pool; call set_module_references first")
        if self._thread is not None and self._thread.is_alive():
            raise RuntimeError("the train worker runs already")
        self._stop_event.clear()
        self._failure = None
        self._thread = threading.Thread(target=self._main_loop, name="train worker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the present batch; returns when it is trained on and its checkpoint written.

        It waits for 25 seconds at most: weights that are not synced may hold the batch up.
        """
        self._stop_event.set()
        self._poll.interrupt()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(JOIN)

    def get_train_step(self) -> int:
        """Return the number of updates."""
        return self._train_step

    def set_train_step(self, step: int) -> None:
        """Set the number of updates, of a model that was loaded by other means than `load_checkpoint`."""
        self._train_step = step

    def health_check(self) -> bool:
        """Return whether it has not failed; what failed was reported to the activity tracker."""
        return self._failure is None

    @property
    def _service(self) -> TrainServiceClient:
        if self._client is None:
            self._client = create_train_service_client(self._service_config)
        return self._client

    def _main_loop(self) -> None:
        try:
            with contextlib.suppress(Stopping):
                self._notified = self._call(self._version)
                if self._train_step < self._notified and self._save_freq <= 0:
                    with self._tracked("going on"):
                        raise self._lost(self._notified)
                if self._notified == self._train_step - 1:
                    # It was interrupted between the checkpoint of its last step and the notice of it.
                    self.save_sync_weights()
                    self._notify()
                idle_since = time.monotonic()
                while self._train_step < self._total and not self._stop_event.is_set():
                    began = time.monotonic()
                    # What is not acknowledged may have to be settled before another batch comes.
                    wait = SETTLE_AFTER if self._unacknowledged else WAIT
                    taken = self._take(self._train_step + (0 if self._took_over else 1), wait)
                    if taken is not None:
                        self._took_over = False
                        with self._tracked("batch"):
                            self._step(taken.batch, taken.id)
                        idle_since = time.monotonic()
                        continue
                    if self._unacknowledged and time.monotonic() - idle_since >= SETTLE_AFTER:
                        self._settle()
                        idle_since = time.monotonic()
                    self._stop_event.wait(max(0.0, began + POLL - time.monotonic()))
                if self._train_step >= self._total:
                    self._acknowledge()
        except Exception as err:  # reported by the tracker's context; what remains is to be seen as unhealthy
            _log.exception("%s: training has failed at step %d", self._module_name, self._train_step)
            self._failure = err

    def _lost(self, step: int) -> CheckpointError:
        return CheckpointError(
            f"the train service has lost its model of step {step}, and train_worker.save_freq is 0, so that "
            "no checkpoint has it; set save_freq to 1 or more, and begin the run again"
        )

    def _step(self, batch: Batch, batch_id: str = "") -> None:
        """Train on a batch, and let the run know: weights, step, metrics, checkpoint, notice."""
        began = time.monotonic()
        batch, states = take_state(batch)
        trained = self._train(batch, batch_id)
        if trained is None:
            return  # it is in the model, or that is a checkpoint's again and the batches since come again
        known = trained.step <= self._notified  # before an interruption, by the rollouts too
        if not known:
            self.save_sync_weights()
        self._train_step = trained.step
        self._algorithms.update(states)
        if batch_id:
            self._unacknowledged.append(batch_id)
        if not known:
            self._track(lambda tracker: tracker.set_training_step(self._train_step))
            metrics = {
                **trained.metrics,
                "training/global_step": self._train_step,
                "training/batch_size": len(batch),
                "timing/training/training_step": time.monotonic() - began,
            }
            self._post(metrics)
        if self._save_freq > 0 and self._train_step % self._save_freq == 0:
            self._save_checkpoint()
        if not known:
            self._notify()
        if self._save_freq <= 0:
            self._acknowledge()

    def _train(self, batch: Batch, batch_id: str) -> Trained | None:
        while True:
            trained = self._call(lambda: self._service.train_batch(batch, batch_id, self._train_step))
            if trained.outcome is TrainOutcome.TRAINED:
                return trained
            if trained.outcome is TrainOutcome.REPEATED:
                if trained.step > self._train_step:
                    return trained  # the answer was lost, or the worker that asked
                self._call(lambda: self._pool.ack(batch_id))
                return None
            _log.warning(
                "%s: the train service has %s; going back to %s",
                self._module_name,
                "no model"
                if trained.outcome is TrainOutcome.UNINITIALIZED
                else f"made {trained.step} updates",
                self._loaded or "the model before its first update",
            )
            before = self._train_step
            if self.load_checkpoint(self._loaded) != before:
                if self._save_freq <= 0:
                    raise self._lost(before)
                return None

    def _save_checkpoint(self) -> None:
        """Write global_step_N, and acknowledge the batches whose updates it has."""
        step = self._train_step
        if not self._folder:
            raise CheckpointError(
                "train_worker.checkpoint_path is missing; set it, or out, or save_freq to 0"
            )
        target = Path(self._folder) / checkpoints.checkpoint_name(step)
        if str(target) != self._loaded:
            partial = checkpoints.partial_path(self._folder, step)
            saved = self._call(lambda: self._service.save_checkpoint(str(partial)))
            if saved != step:
                raise CheckpointError(f"the train service saved {saved} updates where {step} were made")
            if self._controller is not None:
                self._call(lambda: execute(self._controller.checkpoint_saved, step, str(partial)))
            checkpoints.write_file(partial / BATCHES, json.dumps(self._unacknowledged).encode())
            if self._algorithms:
                checkpoints.write_file(partial / STATES, json.dumps(self._algorithms).encode())
            if not (partial / checkpoints.MANIFEST).exists():
                checkpoints.write_file(partial / checkpoints.MANIFEST, b'{"step": %d}' % step)
            self._loaded = str(checkpoints.publish(partial, self._folder, step))
        self._remove_previous(step)
        self._acknowledge()

    def _remove_previous(self, step: int) -> None:
        if setting(self._config, "remove_previous_ckpt", False):
            checkpoints.remove_previous(self._folder, step)

    def _settle(self) -> None:
        """Write a checkpoint if no batch can come before those that are held are acknowledged.

        What flows is looked for in the order in which it does, so that it is seen somewhere.
        """
        if self._loader is None or self._trajectories is None:
            return
        status = self._call(self._loader.status)
        if not status["drained"] or status["leased"] or not self._call(self._trajectories.is_empty):
            return
        if self._call(self._weights.is_waiting_for_validation):
            return  # its end goes on with the data
        if self._take(self._train_step + 1) is None:  # one that is there is given to the same consumer again
            with self._tracked("checkpoint"):
                self._save_checkpoint()

    def _acknowledge(self) -> None:
        ack = getattr(self._pool, "ack", None)
        for batch_id in self._unacknowledged if ack is not None else ():
            self._call(lambda known=batch_id: ack(known))  # type: ignore[misc]
        self._unacknowledged = []

    def _get_batch(self) -> Batch | None:
        """Return the batch of the next step, None if there is none yet."""
        taken = self._take(self._train_step + 1)
        return None if taken is None else taken.batch

    def _take(self, step: int, wait: float = 0.0) -> Taken | None:
        take = getattr(self._pool, "take", None)
        if take is None:
            batch = execute(self._pool.get_batch, self._model_tag)
            return None if batch is None else Taken("", batch)
        if isinstance(self._pool, TrainBatchPool):
            found = self._call(lambda: take(self._model_tag, f"{self._module_name}/{step}", wait, self._poll))
        else:
            found = self._call(lambda: take(self._model_tag, f"{self._module_name}/{step}"))
        return None if found is None else Taken(found[0], found[1])

    def _version(self) -> int:
        """Return the last step of which the weight sync controller knows."""
        ask = getattr(self._weights, "get_train_model_version", None)
        return 0 if ask is None else int(execute(ask, self._model_tag))

    def _notify(self) -> None:
        # The actor counts an update of the same ID once, so that the call may be made again.
        tell: Any = self._weights.train_worker_notify_weight_update
        more: tuple[str, ...] = ()
        if isinstance(self._weights, WeightSyncController):
            actor = self._weights.actor.options(idempotent=True, resolve_timeout=RESOLVE_TIMEOUT)
            tell, more = actor.train_worker_notify_weight_update, (str(self._train_step),)
        self._call(lambda: execute(tell, self._module_name, self._model_tag, *more))
        self._notified = self._train_step

    def _post(self, metrics: dict[str, Any]) -> None:
        backend = setting(self._config, "logger.backend", [])
        for each in [backend] if isinstance(backend, str) else backend:
            self._track(
                lambda tracker, to=each: tracker.experiment_logger_post(  # type: ignore[misc]
                    backend=to,
                    # The same where the step is made again after an interruption.
                    post_id=f"{self._module_name}/{self._train_step}",
                    data=metrics,
                    step=self._train_step,
                )
            )

    def _track(self, report: Callable[[Any], object]) -> None:
        if self._activity_tracker is not None:
            self._call(lambda: report(self._activity_tracker))

    @contextlib.contextmanager
    def _tracked(self, work: str) -> Iterator[None]:
        if self._activity_tracker is None:
            yield
            return
        context = self._activity_tracker.track(self._module_name, work)
        self._call(context.__enter__)
        try:
            yield
        finally:
            context.__exit__(*sys.exc_info())

    def _call(self, ask: Callable[[], T]) -> T:
        """Make a call until its actor answers.

        Raises:
            Stopping: the worker is to stop and the actor is away.
        """
        while True:
            try:
                return ask()
            except UNREACHABLE as err:
                if self._stop_event.is_set():
                    raise Stopping from err
                _log.warning("%s: waiting for an actor: %s", self._module_name, err)
                self._stop_event.wait(AGAIN)


def _below(config: Any, key: str, name: str) -> str:
    """Return the absolute path of a key, by default a directory of the run's; "" if it has none."""
    given, out = str(setting(config, key, "")), str(setting(config, "out", ""))
    path = given or (f"{out}/{name}" if out else "")
    return str(Path(path).absolute()) if path else ""
