"""Reinforcement learning with shared actors: the programs of rl.hcl.

A curriculum says what to play, an exchange carries weights one way and rollouts the other, a trainer
learns, and rollout workers play. All state is in the actors; each of the others may be killed at any time.

`python rl.py` runs all of it on this machine.
"""

import asyncio
import collections
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from fray.cluster import ClusterResolver, Entrypoint, current_cluster
from fray.v2 import JobRequest, ResourceConfig, current_client

INPUTS, ARMS, HIDDEN = 6, 5, 32
TRUTH = np.random.default_rng(11).normal(size=(INPUTS, ARMS))  # the rewards, which only the game reads
PLAYS = 64  # of one rollout


class Curriculum:
    """Says which lesson is next: the harder, the better the last ones went."""

    def __init__(self, lessons: list[dict[str, Any]], target: float = 0.8) -> None:
        self.lessons, self.target = lessons, target
        self.level = 0
        self.rewards: collections.deque[float] = collections.deque(maxlen=30)

    def get_lesson(self) -> dict[str, Any]:
        """Return a lesson: its name, and by how much the best arm is to be better than the next."""
        return self.lessons[self.level]

    def report_result(self, lesson: str, reward: float) -> None:
        """Take note of the mean reward of a rollout."""
        if lesson != self.lessons[self.level]["name"]:
            return  # one that was begun before
        self.rewards.append(reward)
        if (
            len(self.rewards) == 30
            and np.mean(self.rewards) > self.target
            and self.level + 1 < len(self.lessons)
        ):
            self.level += 1
            self.rewards.clear()

    def progress(self) -> dict[str, Any]:
        """Return the lesson that is played now, whether it is the last, and how that goes."""
        enough = len(self.rewards) == 30
        return {
            "lesson": self.lessons[self.level]["name"],
            "last": self.level + 1 == len(self.lessons),
            "reward": float(np.mean(self.rewards)) if enough else 0.0,
        }


class Exchange:
    """Holds the newest weights for the rollout workers, and their rollouts for the trainer."""

    def __init__(self) -> None:
        self.step, self.weights, self.done = 0, initial_weights(), False
        self.rollouts: collections.deque[dict[str, Any]] = collections.deque(maxlen=64)
        self.arrived = asyncio.Condition()

    async def publish(self, step: int, weights: list[np.ndarray], done: bool = False) -> None:
        """Make new weights known. `done` asks everybody to stop."""
        self.step, self.weights, self.done = step, weights, done

    async def latest(self) -> dict[str, Any]:
        """Return the newest weights."""
        return {"step": self.step, "weights": self.weights, "done": self.done}

    async def put(self, rollout: dict[str, Any]) -> None:
        """Take a rollout; the oldest give way."""
        async with self.arrived:
            self.rollouts.append(rollout)
            self.arrived.notify_all()

    async def take(self, count: int) -> list[dict[str, Any]]:
        """Return rollouts as soon as there are so many. No other call waits for that."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.rollouts) >= count)
            return [self.rollouts.popleft() for _ in range(count)]


# The policy: a network with one hidden layer and a softmax.


def initial_weights() -> list[np.ndarray]:
    """Return the weights of a policy that knows nothing."""
    rng = np.random.default_rng(0)
    return [rng.normal(0, INPUTS**-0.5, (INPUTS, HIDDEN)), rng.normal(0, 0.1 * HIDDEN**-0.5, (HIDDEN, ARMS))]


def forward(weights: list[np.ndarray], seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the hidden layer, and how likely each arm is chosen."""
    hidden = np.tanh(seen @ weights[0])
    scores = np.exp(hidden @ weights[1])
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def play(weights: list[np.ndarray], margin: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return a rollout: what was seen, which arms were chosen, and what they paid."""
    seen = rng.normal(size=(40 * PLAYS, INPUTS))
    best_two = np.sort(seen @ TRUTH, axis=1)[:, -2:]
    seen = seen[best_two[:, 1] - best_two[:, 0] > margin][:PLAYS]
    chances = forward(weights, seen)[1]
    arms = (chances.cumsum(axis=1) > rng.random((len(seen), 1))).argmax(axis=1)
    rewards = (arms == (seen @ TRUTH).argmax(axis=1)).astype(np.float64)
    return {"seen": seen, "arms": arms, "rewards": rewards}


def improve(weights: list[np.ndarray], rollouts: list[dict[str, Any]], rate: float = 0.1) -> list[np.ndarray]:
    """Return weights after one step of the policy gradient (REINFORCE with a baseline)."""
    seen, arms, rewards = (np.concatenate([r[key] for r in rollouts]) for key in ("seen", "arms", "rewards"))
    hidden, chances = forward(weights, seen)
    push = -chances
    push[np.arange(len(arms)), arms] += 1
    push *= ((rewards - rewards.mean()) / (rewards.std() + 1e-3) / len(arms))[:, None]
    back = push @ weights[1].T * (1 - hidden**2)
    return [weights[0] + rate * (seen.T @ back), weights[1] + rate * (hidden.T @ push)]


# The workers


def train_worker_main(target: float, result: str) -> None:
    """Learn until the hardest lesson goes well."""
    resolver = ClusterResolver(current_cluster())
    curriculum, exchange = resolver.wait_for_actor("curriculum"), resolver.wait_for_actor("exchange")
    newest = exchange.latest()  # of the trainer before this one
    step, weights = newest["step"], newest["weights"]
    print(f"training goes on at step {step}", flush=True)
    while True:
        progress = curriculum.progress()
        if step % 100 == 0:
            print(f"step {step}: lesson {progress['lesson']}, reward {progress['reward']:.2f}", flush=True)
        if progress["last"] and progress["reward"] >= target:
            break
        weights = improve(weights, exchange.take(4))
        step += 1
        exchange.publish(step, weights)
    Path(result).parent.mkdir(parents=True, exist_ok=True)
    Path(result).write_text(json.dumps({"steps": step, **progress, "untrained": untrained()}))
    exchange.publish(step, weights, done=True)


def untrained() -> float:
    """Return the mean reward of a policy that knows nothing."""
    rng = np.random.default_rng(1)
    return float(np.mean([play(initial_weights(), 0, rng)["rewards"].mean() for _ in range(20)]))


def rollout_worker_main(worker: int, pause: float = 0) -> None:
    """Play with the newest weights until training is done."""
    resolver = ClusterResolver(current_cluster())
    curriculum, exchange = resolver.wait_for_actor("curriculum"), resolver.wait_for_actor("exchange")
    rng = np.random.default_rng([worker, os.getpid()])
    played = 0
    while not (newest := exchange.latest())["done"]:
        lesson = curriculum.get_lesson()
        rollout = play(newest["weights"], lesson["margin"], rng)
        exchange.put(rollout)
        curriculum.report_result(lesson["name"], float(rollout["rewards"].mean()))
        played += 1
        if played == 1:
            print(f"worker {worker} plays", flush=True)
        time.sleep(pause)
    print(f"worker {worker} played {played} rollouts")


LESSONS = [
    {"name": "easy", "margin": 1.5},
    {"name": "middling", "margin": 0.7},
    {"name": "hard", "margin": 0.2},
]


def main() -> None:
    """Run on this machine: one program creates the actors and the jobs."""
    result = f"{tempfile.mkdtemp(prefix='fray-rl-')}/result.json"
    client = current_client()
    client.create_actor(Curriculum, LESSONS, name="curriculum", resources=ResourceConfig(preemptible=False))
    client.create_actor(Exchange, name="exchange", resources=ResourceConfig(preemptible=False))
    calls = [Entrypoint.from_callable(train_worker_main, args=(0.9, result))]
    calls += [Entrypoint.from_callable(rollout_worker_main, args=(i,)) for i in range(2)]
    jobs = [client.submit(JobRequest(f"worker-{i}", call)) for i, call in enumerate(calls)]
    for job in jobs:
        job.wait()
    print(Path(result).read_text())


if __name__ == "__main__":
    if sys.argv[1:] == ["trainer"]:
        train_worker_main(float(os.environ["TARGET"]), os.environ["RESULT"])
    elif sys.argv[1:] == ["rollout"]:
        rollout_worker_main(int(os.environ["WORKER"]), float(os.environ["PAUSE"]))
    else:
        main()
