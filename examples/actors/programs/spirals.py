"""A network with one hidden layer, which tells three spirals apart."""

import numpy as np

ARMS = 3
Points = np.ndarray  # n by 2
Labels = np.ndarray  # n


def spirals(count: int, seed: int) -> tuple[Points, Labels]:
    """Return points on three spirals that wind around each other, and which of them each is on."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(ARMS, size=count)
    along = rng.uniform(0.1, 1, size=count)
    angle = 4 * along + labels * 2 * np.pi / ARMS + rng.normal(0, 0.06, size=count)
    return along[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), labels


class Network:
    """Weights of two layers, trained by Adam on the cross entropy."""

    def __init__(self, hidden: int = 48, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.weights = [
            rng.normal(0, 2, (2, hidden)),
            rng.normal(0, 1, hidden),
            rng.normal(0, hidden**-0.5, (hidden, ARMS)),
            np.zeros(ARMS),
        ]

    def probabilities(self, points: Points) -> np.ndarray:
        """Return, for each point, how likely it is on each spiral."""
        return self._forward(points)[1]

    def _forward(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        first, bias, second, shift = self.weights
        hidden = np.tanh(points @ first + bias)
        scores = hidden @ second + shift
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return hidden, scores / scores.sum(axis=1, keepdims=True)

    def loss(self, points: Points, labels: Labels) -> float:
        """Return the mean cross entropy."""
        return float(-np.log(self.probabilities(points)[np.arange(len(labels)), labels]).mean())

    def gradient(self, points: Points, labels: Labels) -> list[np.ndarray]:
        """Return the gradient of the loss by each of the weights."""
        hidden, wrong = self._forward(points)
        wrong[np.arange(len(labels)), labels] -= 1
        wrong /= len(labels)
        back = wrong @ self.weights[2].T * (1 - hidden**2)
        return [points.T @ back, back.sum(axis=0), hidden.T @ wrong, wrong.sum(axis=0)]


class Adam:
    """The optimizer: momentum, and steps that are scaled by how large gradients have been."""

    def __init__(self, rate: float = 0.02) -> None:
        self.rate, self.step = rate, 0
        self.moments: list[tuple[np.ndarray, np.ndarray]] = []

    def update(self, weights: list[np.ndarray], gradient: list[np.ndarray]) -> list[np.ndarray]:
        """Return better weights."""
        self.step += 1
        before = self.moments or [(np.zeros_like(g), np.zeros_like(g)) for g in gradient]
        self.moments = [
            (0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g) for (m, v), g in zip(before, gradient, strict=True)
        ]
        rate = self.rate * np.sqrt(1 - 0.99**self.step) / (1 - 0.9**self.step)
        return [w - rate * m / (np.sqrt(v) + 1e-8) for w, (m, v) in zip(weights, self.moments, strict=True)]


def trained(steps: int = 400, seed: int = 0) -> Network:
    """Return a network that was trained on the spirals."""
    network, adam = Network(seed=seed), Adam()
    for step in range(steps):
        points, labels = spirals(256, seed=1000 + step)
        network.weights = adam.update(network.weights, network.gradient(points, labels))
    return network
