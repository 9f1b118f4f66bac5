"""A rollout worker: plays episodes with the newest weights and hands them in.

It reads COORDINATOR and its number, WORKER, and ends when the trainer has finished.
"""

import os
import random
from pathlib import Path

import cartpole
import files
import policy
from client import Coordinator


def main() -> None:
    worker = int(os.environ["WORKER"])
    coordinator = Coordinator()
    rng = random.Random(worker)
    step, weights, played = 0, [0.0] * policy.SIZE, 0
    while not (now := coordinator.call("lesson"))["finished"]:
        if now["checkpoint"] and now["step"] != step:
            step, weights = load(Path(now["checkpoint"]), step, weights)
        episode = cartpole.play(policy.sample(weights, rng), rng, now["limit"])
        coordinator.call("put", lesson=now["lesson"], step=step, episode=episode)
        played += 1
    coordinator.call("leave", worker=worker)
    print(f"worker {worker}: played {played} episodes, the last with the weights of step {step}", flush=True)


def load(path: Path, step: int, weights: policy.Weights) -> tuple[int, policy.Weights]:
    """Read a checkpoint; one that the trainer has dropped meanwhile changes nothing."""
    try:
        newest = files.read(path)
    except FileNotFoundError:
        return step, weights
    return newest["step"], newest["weights"]


if __name__ == "__main__":
    main()
