"""Train a digit classifier, data parallel over the processes of one slice.

Every process holds a whole copy of the model and its own part of each batch;
XLA sums the gradients across processes. All randomness follows from the step
number, so a run that is killed and resumes from its checkpoint computes
exactly what an undisturbed run does. SIGTERM makes all processes stop after the
same step, with a checkpoint of it.

fray sets JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID. Beside
them the program reads

    CHECKPOINT_DIR  directory that all hosts see; where a run goes on from
    RESULT          file that process 0 writes at the end, as JSON
    STEPS           steps in all (120)
    STEP_DELAY      seconds to sleep after each step (0), to leave time for faults
"""

import csv
import gzip
import hashlib
import json
import os
import signal
import sys
import time
import traceback
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import checkpoint

HIDDEN = 64
BATCH = 256
LEARNING_RATE = 0.1
MOMENTUM = 0.9
CHECKPOINT_EVERY = 10
HELD_OUT = 360
# A peer that is gone for this long ends the run; fray starts it again, whole.
HEARTBEAT_TIMEOUT_SECONDS = 60

Params = dict[str, jax.Array]
State = dict[str, Params]  # "params" and "velocity"


def load_digits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the images, scaled to 0..1, and their labels."""
    with gzip.open(path, "rt", newline="") as file:
        rows = np.array([[float(x) for x in row] for row in csv.reader(file)], np.float32)
    return rows[:, :-1] / 16, rows[:, -1].astype(np.int32)


def initial_state() -> State:
    rng = np.random.default_rng(0)
    params = {
        "w1": rng.normal(0, (2 / 64) ** 0.5, (64, HIDDEN)),
        "b1": np.zeros(HIDDEN),
        "w2": rng.normal(0, (1 / HIDDEN) ** 0.5, (HIDDEN, 10)),
        "b2": np.zeros(10),
    }
    params = {name: value.astype(np.float32) for name, value in params.items()}
    return {"params": params, "velocity": {name: np.zeros_like(v) for name, v in params.items()}}


def logits(params: Params, images: jax.Array) -> jax.Array:
    hidden = jax.nn.relu(images @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss(params: Params, images: jax.Array, labels: jax.Array) -> jax.Array:
    log_probabilities = jax.nn.log_softmax(logits(params, images))
    return -jnp.mean(jnp.take_along_axis(log_probabilities, labels[:, None], axis=1))


@partial(jax.jit, donate_argnums=0)
def train_step(state: State, images: jax.Array, labels: jax.Array) -> tuple[State, jax.Array]:
    value, gradients = jax.value_and_grad(loss)(state["params"], images, labels)
    velocity = jax.tree.map(lambda v, g: MOMENTUM * v + g, state["velocity"], gradients)
    params = jax.tree.map(lambda p, v: p - LEARNING_RATE * v, state["params"], velocity)
    return {"params": params, "velocity": velocity}, value


@jax.jit
def count_correct(params: Params, images: jax.Array, labels: jax.Array) -> jax.Array:
    return jnp.sum(jnp.argmax(logits(params, images), axis=1) == labels)


class Stopped(Exception):
    """The run was told to end before its last step."""


class Trainer:
    """The run of one process among its peers."""

    def __init__(self, checkpoints: Path):
        self.checkpoints = checkpoints
        self.images, self.labels = load_digits(Path(__file__).with_name("digits.csv.gz"))
        mesh = Mesh(np.array(jax.devices()), ("data",))
        self.split = NamedSharding(mesh, PartitionSpec("data"))
        self.copied = NamedSharding(mesh, PartitionSpec())

    def resume(self) -> tuple[int, State]:
        """Return the step to go on from and the state after it, the same on every host."""
        step = checkpoint.newest(self.checkpoints) if jax.process_index() == 0 else 0
        # Process 0 decides: hosts must not disagree about which file is newest.
        step = int(multihost_utils.broadcast_one_to_all(np.int32(step)))
        state = initial_state()
        if step > 0:
            arrays = checkpoint.load(self.checkpoints, step)
            state = {part: {n: arrays[f"{part}/{n}"] for n in state[part]} for part in state}
        return step, jax.tree.map(self._copy, state)

    def save(self, step: int, state: State) -> None:
        if jax.process_index() == 0:
            arrays = {f"{part}/{n}": local(v) for part in state for n, v in state[part].items()}
            checkpoint.save(self.checkpoints, step, arrays)
            print(f"checkpoint at step {step}", flush=True)

    def train(self, steps: int, delay: float) -> dict:
        """Train until steps are done and return what came of it."""
        first, state = self.resume()
        if first > 0:
            print(f"resumed from step {first}", flush=True)
        for step in range(first + 1, steps + 1):
            images, labels = self._batch(step)
            state, value = train_step(state, images, labels)
            stop = multihost_utils.reached_preemption_sync_point(step)
            if step % CHECKPOINT_EVERY == 0 or step == steps or stop:
                print(f"step {step} loss {float(local(value)):.6f}", flush=True)
                self.save(step, state)
            if stop and step < steps:
                raise Stopped(f"told to stop, after step {step}")
            time.sleep(delay)
        return self._result(max(first, steps), state)

    def _batch(self, step: int) -> tuple[jax.Array, jax.Array]:
        """The batch of a step: it depends on the step alone, and each host cuts out its part."""
        chosen = np.random.default_rng([1, step]).choice(len(self.labels) - HELD_OUT, BATCH, replace=False)
        return self._spread(self.images[chosen]), self._spread(self.labels[chosen])

    def _result(self, steps: int, state: State) -> dict:
        images, labels = self._spread(self.images[-HELD_OUT:]), self._spread(self.labels[-HELD_OUT:])
        correct = int(local(count_correct(state["params"], images, labels)))
        weights = hashlib.sha256()
        for name in sorted(state["params"]):
            weights.update(local(state["params"][name]).tobytes())
        return {
            "steps": steps,
            "processes": jax.process_count(),
            "accuracy": correct / HELD_OUT,
            "weights_sha256": weights.hexdigest(),
        }

    def _copy(self, whole: np.ndarray) -> jax.Array:
        return jax.make_array_from_callback(whole.shape, self.copied, lambda part: whole[part])

    def _spread(self, whole: np.ndarray) -> jax.Array:
        return jax.make_array_from_callback(whole.shape, self.split, lambda part: whole[part])


def local(replicated: jax.Array) -> np.ndarray:
    """This process's copy of an array that is the same everywhere."""
    return np.asarray(replicated.addressable_data(0))


def main() -> None:
    checkpoints, result = Path(os.environ["CHECKPOINT_DIR"]), Path(os.environ["RESULT"])
    checkpoints.mkdir(parents=True, exist_ok=True)
    processes = int(os.environ["JAX_NUM_PROCESSES"])
    if BATCH % processes or HELD_OUT % processes:
        sys.exit(f"a batch of {BATCH} does not divide over {processes} processes")
    jax.distributed.initialize(
        coordinator_address=os.environ["JAX_COORDINATOR_ADDRESS"],
        num_processes=processes,
        process_id=int(os.environ["JAX_PROCESS_ID"]),
        heartbeat_timeout_seconds=HEARTBEAT_TIMEOUT_SECONDS,
    )
    print(f"process {jax.process_index()} of {jax.process_count()} on {jax.default_backend()}", flush=True)
    report = Trainer(checkpoints).train(int(os.environ.get("STEPS", "120")), float(os.environ.get("STEP_DELAY", "0")))
    if jax.process_index() == 0:
        result.parent.mkdir(parents=True, exist_ok=True)
        checkpoint.write_atomically(result, lambda file: file.write(json.dumps(report, indent=2).encode() + b"\n"))
        print(f"accuracy {report['accuracy']:.4f}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Stopped as stopped:
        print(stopped, flush=True)
        jax.distributed.shutdown()
        sys.exit(128 + signal.SIGTERM)
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        # A normal exit would wait for peers that may be gone.
        os._exit(1)
