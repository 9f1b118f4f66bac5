"""Runs scenarios on Ray and prints their outcomes as JSON: python -m parity [NAME...], with Ray installed."""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from parity.engine import ends
from parity.ray_engine import Ray, ray
from parity.scenarios import SCENARIOS


def main(names: list[str]) -> None:
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, namespace="parity")
    outcomes = {}
    with tempfile.TemporaryDirectory() as directory:
        for name in names or SCENARIOS:
            scratch = Path(directory, name)
            scratch.mkdir()
            engine = Ray(scratch)
            outcomes[name] = ends(engine, partial(SCENARIOS[name], engine))
            print(name, outcomes[name], file=sys.stderr, flush=True)
    print(json.dumps({"ray": ray.__version__, "outcomes": outcomes}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
