"""The trainer: learns from rollouts, data parallel over the tasks of a gang.

Each task takes its part of every batch from the coordinator and computes a
gradient; the gang sums the gradients, so that all tasks hold the same weights.
Process 0 saves them and publishes where. Beside the gang's variables and
COORDINATOR it reads

    OUT     directory that all hosts see
    TARGET  mean episode length that is good enough (475 of 500)
    STEPS   after which it gives up (1000)

and writes OUT/result.json.
"""

import math
import os
import random
import sys
from pathlib import Path

import cartpole
import files
import policy
from client import Coordinator
from gang import Gang

BATCH = 16  # episodes, all tasks together
LEARNING_RATE = 1.0
EVALUATE_EVERY = 10  # steps
EVALUATIONS = 40  # episodes, all tasks together
LIMIT = 500
KEEP = 5  # checkpoints, because workers may still read an older one


class Trainer:
    def __init__(self, out: Path):
        self.gang = Gang()
        self.coordinator = Coordinator()
        self.out = out
        self.step, self.weights = self._resume()

    def train(self, target: float, steps: int) -> bool:
        """Train until an evaluation meets the target; report whether one did."""
        self._publish()
        while True:
            if self.step % EVALUATE_EVERY == 0:
                mean = self._evaluate()
                self._say(f"step {self.step} mean episode {mean:.1f} of {LIMIT}")
                if mean >= target:
                    self._finish({"steps": self.step, "mean_episode": mean, "target": target})
                    return True
            if self.step >= steps:
                return False
            self._learn(self._rollouts())
            self.step += 1
            self._publish()

    def _rollouts(self) -> list[cartpole.Episode]:
        mine = BATCH // self.gang.size
        episodes: list[cartpole.Episode] = []
        while len(episodes) < mine:
            episodes += self.coordinator.call("take", count=mine - len(episodes))["episodes"]
        return episodes

    def _learn(self, episodes: list[cartpole.Episode]) -> None:
        values = [value for episode in episodes for value in policy.returns(episode)]
        count, total, squares = self.gang.sum([len(values), sum(values), sum(v * v for v in values)])
        mean = total / count
        deviation = math.sqrt(max(squares / count - mean * mean, 1e-12))
        gradient = self.gang.sum(policy.gradient(self.weights, episodes, mean, deviation))
        self.weights = [w + LEARNING_RATE * g / count for w, g in zip(self.weights, gradient)]

    def _evaluate(self) -> float:
        """The mean length of episodes with fixed seeds, each task playing its share."""
        length = 0
        for seed in range(self.gang.rank, EVALUATIONS, self.gang.size):
            rng = random.Random(seed)
            length += len(cartpole.play(policy.sample(self.weights, rng), rng, LIMIT))
        return self.gang.sum([length])[0] / EVALUATIONS

    def _resume(self) -> tuple[int, policy.Weights]:
        newest = {"step": 0, "weights": [0.0] * policy.SIZE}
        found = sorted((self.out / "checkpoints").glob("step-*.json"))
        if self.gang.rank == 0 and found:
            newest = files.read(found[-1])
        newest = self.gang.broadcast(newest)
        if newest["step"] > 0:
            self._say(f"resumed from step {newest['step']}")
        return newest["step"], newest["weights"]

    def _publish(self) -> None:
        if self.gang.rank != 0:
            return
        checkpoints = self.out / "checkpoints"
        path = checkpoints / f"step-{self.step:06d}.json"
        files.write(path, {"step": self.step, "weights": self.weights})
        self.coordinator.call("publish", step=self.step, checkpoint=str(path))
        for old in sorted(checkpoints.glob("step-*.json"))[:-KEEP]:
            old.unlink()

    def _finish(self, result: dict) -> None:
        if self.gang.rank == 0:
            files.write(self.out / "result.json", result)
            self.coordinator.call("finish")

    def _say(self, text: str) -> None:
        if self.gang.rank == 0:
            print(text, flush=True)


def main() -> None:
    trainer = Trainer(Path(os.environ["OUT"]))
    if BATCH % trainer.gang.size:
        sys.exit(f"a batch of {BATCH} does not divide over {trainer.gang.size} tasks")
    target, steps = float(os.environ.get("TARGET", "475")), int(os.environ.get("STEPS", "1000"))
    if not trainer.train(target, steps):
        sys.exit(f"no evaluation reached {target:g} in {steps} steps")


if __name__ == "__main__":
    main()
