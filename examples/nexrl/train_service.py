"""The train service: one update of the policy for each batch, on the processes of a gang.

    python train_service.py

is what each process of the gang runs; one process alone may be
`python -m fray.rl train_service` too. Of the run's configuration it reads
`seed` and service.train_service.config: `learning_rate` and `clip_ratio`.
Process 0 hosts the actor train_service_0; every process computes the gradient
of its part of a batch. Sums are in the order of ranks, so that the same batches
give the same weights, bit by bit, in every run of a gang of this size.
"""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from fray.rl.__main__ import main as host
from fray.rl.__main__ import reject

try:
    import numpy as np
    import policy
    from gang import Gang
except ImportError as error:
    sys.exit(reject(f"{error}: install it for {sys.executable}"))
from fray.rl.config import VARIABLE, load
from fray.rl.ended import end_of
from fray.rl.nexrl_types import Batch
from fray.rl.train.service import TrainService

RATE = 0.05
COLUMNS = ("prompts", "responses", "response_mask", "advantages", "old_log_probs")


class ReverseTrainService(TrainService):
    """Trains policy.Weights with Adam on the clipped surrogate objective."""

    def __init__(self, _config: Any = None, gang: Gang | None = None):
        super().__init__()
        self._gang = gang or Gang()

    def build(self, config: Mapping[str, Any]) -> None:
        given = config.get("config") or {}
        self._clip = float(given.get("clip_ratio", 0.2))
        self._weights = policy.Weights.initial(int(config.get("seed", 0)))
        self._optimizer = policy.Adam(float(given.get("learning_rate", RATE)))

    def update(self, batch: Batch) -> dict[str, float]:
        columns = [np.asarray(batch.values[name]) for name in COLUMNS]
        shards = zip(*(np.array_split(column, self._gang.size) for column in columns), strict=True)
        total, weights = float(columns[2].sum()), self._weights.arrays()
        parts = [
            {"weights": weights, "shard": list(shard), "total": total, "clip": self._clip} for shard in shards
        ]
        answers = self._gang.each(parts, gradient_of_part)
        gradient = policy.Weights.zeros()
        for answer in answers:
            for name, value in gradient.arrays().items():
                value += answer["gradient"][name]
        self._optimizer.update(self._weights, gradient)
        norm = sum(float((value**2).sum()) for value in gradient.arrays().values()) ** 0.5
        return {"actor/pg_loss": sum(answer["loss"] for answer in answers), "actor/grad_norm": norm}

    def state(self) -> Mapping[str, Any]:
        moments = {"first": self._optimizer.first, "second": self._optimizer.second, "weights": self._weights}
        arrays = {
            f"{owner}.{name}": array
            for owner, each in moments.items()
            for name, array in each.arrays().items()
        }
        return {**arrays, "count": np.int64(self._optimizer.count)}

    def restore(self, state: Mapping[str, Any]) -> None:
        def part(owner: str) -> policy.Weights:
            return policy.Weights(
                **{name: state[f"{owner}.{name}"] for name in policy.Weights.zeros().arrays()}
            )

        self._weights = part("weights")
        self._optimizer.first, self._optimizer.second = part("first"), part("second")
        self._optimizer.count = int(state["count"])

    def weights(self) -> Mapping[str, Any]:
        return self._weights.arrays()


def gradient_of_part(part: Mapping[str, Any]) -> dict[str, Any]:
    weights, total, clip = policy.Weights(**part["weights"]), part["total"], part["clip"]
    prompts, answers, mask, advantages, sampled = part["shard"]
    loss, gradient = policy.loss_and_gradient(
        weights, prompts, answers, mask, advantages, sampled, total, clip
    )
    return {"loss": loss, "gradient": gradient.arrays()}


def main() -> int:
    if end_of(load()) is not None:  # started again after the end of its run
        return 0
    if int(os.environ.get("JAX_PROCESS_ID", "0")):
        Gang().follow(gradient_of_part)
        return 0
    config = load()
    service = config.setdefault("service", {}).setdefault("train_service", {})
    service.setdefault("class", "train_service:ReverseTrainService")
    os.environ[VARIABLE] = json.dumps(config)
    return host(["train_service"])


if __name__ == "__main__":
    sys.exit(main())
