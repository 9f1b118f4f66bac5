"""Reinforcement learning: a trainer and rollout workers, which share actors.

Run it with `python examples/client/rl.py`.

This program creates the actors and hands them to the jobs. The curriculum gives out lessons; the exchange has
the latest weights, and the rollouts that were made with them.
"""

import math
import random
import threading
from typing import TYPE_CHECKING, NamedTuple

from fray.v2 import ActorOptions, Entrypoint, JobRequest, ResourceConfig, current_client

if TYPE_CHECKING:
    from fray.v2 import ActorHandle

ARMS = (0.2, 0.8, 0.5)  # how often each arm of the bandit pays
LESSONS = 4  # in each step
STEPS = 5


class Lesson(NamedTuple):
    """What to play: the step, and the seed of its chance."""

    step: int
    seed: int


class Curriculum:
    """Gives out lessons: those of a step once the one before is over."""

    def __init__(self, steps: int, lessons: int) -> None:
        self.waiting = [Lesson(step, seed) for step in range(steps) for seed in range(lessons)]
        self.step = -1

    def begin(self, step: int) -> None:
        """Allow the lessons of a step."""
        self.step = step

    def next_lesson(self) -> tuple[int, int] | None:
        """Return a lesson; (-1, 0): there is none now; None: there will be none."""
        if not self.waiting:
            return None
        if self.waiting[0].step > self.step:
            return (-1, 0)
        lesson = self.waiting.pop(0)
        return lesson.step, lesson.seed


class Exchange:
    """Has the weights, and the rollouts of the step."""

    def __init__(self) -> None:
        self.weights = [0.0] * len(ARMS)
        self.rollouts: dict[int, list[tuple[int, int]]] = {}
        self.complete = threading.Condition()

    def publish(self, weights: list[float]) -> None:
        """Replace the weights."""
        self.weights, self.rollouts = list(weights), {}

    def latest(self) -> list[float]:
        """Return the weights."""
        return self.weights

    def add(self, seed: int, plays: list[tuple[int, int]]) -> None:
        """Take the rollout of a lesson."""
        with self.complete:
            self.rollouts[seed] = plays
            self.complete.notify_all()

    def take(self, count: int) -> list[tuple[int, list[tuple[int, int]]]]:
        """Wait for so many rollouts, and return them in the order of their lessons."""
        with self.complete:
            self.complete.wait_for(lambda: len(self.rollouts) >= count)
            return sorted(self.rollouts.items())


def train(curriculum: "ActorHandle[Curriculum]", exchange: "ActorHandle[Exchange]") -> None:
    """Learn which arm pays most, from the rollouts of others."""
    weights = [0.0] * len(ARMS)
    for step in range(STEPS):
        exchange.publish(weights)
        curriculum.begin(step)
        for _, plays in exchange.take(LESSONS):
            for arm, reward in plays:
                weights[arm] += 0.1 * (reward - 0.5)
        print(f"step {step}: weights {[round(weight, 2) for weight in weights]}")
    exchange.publish(weights)


def roll_out(curriculum: "ActorHandle[Curriculum]", exchange: "ActorHandle[Exchange]") -> None:
    """Play lessons with the latest weights until there are none."""
    while (lesson := curriculum.next_lesson()) is not None:
        step, seed = lesson
        if step < 0:
            threading.Event().wait(0.02)
            continue
        chance = random.Random(100 * step + seed)
        weights = exchange.latest()
        arms = chance.choices(range(len(ARMS)), [math.exp(weight) for weight in weights], k=20)
        exchange.add(seed, [(arm, 1 if chance.random() < ARMS[arm] else 0) for arm in arms])


def main() -> None:
    """Train for a few steps."""
    client = current_client()
    small = ResourceConfig(cpu=0.1, ram="200m", preemptible=False)
    curriculum = client.create_actor(Curriculum, STEPS, LESSONS, name="curriculum", resources=small)
    exchange = client.create_actor(
        Exchange, name="exchange", resources=small, options=ActorOptions(max_concurrency=8)
    )
    workers = [("train", train), ("rollout-0", roll_out), ("rollout-1", roll_out)]
    jobs = [
        client.submit(
            JobRequest(
                name=name,
                entrypoint=Entrypoint.from_callable(function, args=(curriculum, exchange)),
                resources=ResourceConfig(cpu=0.25, ram="200m"),
            )
        )
        for name, function in workers
    ]
    for job in jobs:
        job.wait(timeout=600, raise_on_failure=True)
    weights = exchange.latest()
    best = weights.index(max(weights))
    print(f"result: arm {best} pays most; weights {[round(weight, 2) for weight in weights]}")
    client.shutdown()


if __name__ == "__main__":
    main()
