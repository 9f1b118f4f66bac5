"""A logistic policy and its policy gradient (REINFORCE)."""

import math
import random

from cartpole import Episode, Observation

DISCOUNT = 0.98
# Brings the four quantities to about the same size.
SCALE = (1.0, 1.0, 10.0, 2.0)
SIZE = len(SCALE) + 1

Weights = list[float]  # one per quantity, and a bias


def features(observation: Observation) -> list[float]:
    return [x * s for x, s in zip(observation, SCALE)] + [1.0]


def probability_right(weights: Weights, observation: Observation) -> float:
    score = sum(w * x for w, x in zip(weights, features(observation)))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


def sample(weights: Weights, rng: random.Random):
    """A way to choose at random, as the policy says."""
    return lambda observation: int(rng.random() < probability_right(weights, observation))


def returns(episode: Episode) -> list[float]:
    """The discounted return from each step on."""
    out, total = [], 0.0
    for _ in episode:
        total = 1 + DISCOUNT * total
        out.append(total)
    return out[::-1]


def gradient(weights: Weights, episodes: list[Episode], mean: float, deviation: float) -> Weights:
    """The sum over all steps of grad log p(action) times the normalised return."""
    out = [0.0] * SIZE
    for episode in episodes:
        for (observation, action), value in zip(episode, returns(episode)):
            factor = (value - mean) / deviation * (action - probability_right(weights, observation))
            for i, x in enumerate(features(observation)):
                out[i] += factor * x
    return out
