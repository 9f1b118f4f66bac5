"""The cart-pole task: push a cart left or right so that its pole stays up.

Dynamics and limits are those of A. Barto, R. Sutton and C. Anderson,
"Neuronlike adaptive elements that can solve difficult learning control
problems", 1983, with Euler steps of 20 ms. An episode's return is the number
of steps for which the pole stays up.
"""

import math
import random
from collections.abc import Callable

GRAVITY = 9.8
CART_MASS, POLE_MASS = 1.0, 0.1
HALF_LENGTH = 0.5
FORCE = 10.0
STEP_SECONDS = 0.02
MAX_POSITION = 2.4
MAX_ANGLE = math.radians(12)

Observation = tuple[float, float, float, float]  # position, velocity, angle, angular velocity
Episode = list[tuple[Observation, int]]  # what was seen and done, step by step


def start(rng: random.Random) -> Observation:
    return tuple(rng.uniform(-0.05, 0.05) for _ in range(4))


def push(observation: Observation, right: int) -> Observation:
    position, velocity, angle, spin = observation
    force = FORCE if right else -FORCE
    total = CART_MASS + POLE_MASS
    sin, cos = math.sin(angle), math.cos(angle)
    inertia = (force + POLE_MASS * HALF_LENGTH * spin * spin * sin) / total
    turn = (GRAVITY * sin - cos * inertia) / (HALF_LENGTH * (4 / 3 - POLE_MASS * cos * cos / total))
    speedup = inertia - POLE_MASS * HALF_LENGTH * turn * cos / total
    return (
        position + STEP_SECONDS * velocity,
        velocity + STEP_SECONDS * speedup,
        angle + STEP_SECONDS * spin,
        spin + STEP_SECONDS * turn,
    )


def play(choose: Callable[[Observation], int], rng: random.Random, limit: int) -> Episode:
    """Play one episode of at most limit steps."""
    observation = start(rng)
    episode: Episode = []
    while len(episode) < limit:
        action = choose(observation)
        episode.append((observation, action))
        observation = push(observation, action)
        if abs(observation[0]) > MAX_POSITION or abs(observation[2]) > MAX_ANGLE:
            break
    return episode
