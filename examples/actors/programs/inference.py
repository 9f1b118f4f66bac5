"""A pool of inference servers, and a client that spreads batches over them: the programs of inference.hcl.

`python inference.py` runs all of it on this machine.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from spirals import spirals, trained

from fray.cluster import ClusterResolver, current_cluster
from fray.rpc import LeastLoaded, method
from fray.v2 import current_client

BATCH = 50


class InferenceActor:
    """Holds a model, which it trains as it starts, and answers with it."""

    def __init__(self, steps: int = 400) -> None:
        self.network = trained(steps)
        self.name = f"server-{os.urandom(4).hex()}"

    @method(idempotent=True)
    def predict(self, points: np.ndarray) -> dict[str, Any]:
        """Return on which spiral each point is, and who says so. Running twice does no harm."""
        return {"labels": self.network.probabilities(points).argmax(axis=1), "server": self.name}


def client(batches: int, pause: float) -> dict[str, Any]:
    """Have many points told apart, several batches at a time, and return how well that went."""
    pool = LeastLoaded(ClusterResolver(current_cluster()), "inference")
    points, labels = spirals(batches * BATCH, seed=7)
    futures = []
    for i in range(batches):
        futures.append(pool.predict.remote(points[i * BATCH : (i + 1) * BATCH]))
        time.sleep(pause)
    answers = [future.result(timeout=120) for future in futures]
    said = np.concatenate([answer["labels"] for answer in answers])
    return {
        "points": len(said),
        "accuracy": float((said == labels).mean()),
        "servers": len({answer["server"] for answer in answers}),
    }


def main() -> None:
    """Run on this machine."""
    group = current_client().create_actor_group(InferenceActor, name="inference", count=3)
    group.wait_ready()
    print(client(batches=40, pause=0))
    group.terminate()


if __name__ == "__main__":
    if sys.argv[1:] == ["client"]:
        result = Path(os.environ["RESULT"])
        result.parent.mkdir(parents=True, exist_ok=True)
        result.write_text(json.dumps(client(int(os.environ["BATCHES"]), float(os.environ["PAUSE"]))))
    else:
        main()
