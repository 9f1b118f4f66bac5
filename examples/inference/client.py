"""Spreads prompts over the replicas of the model server, one after the other.

It reads

    ENDPOINTS  the replicas, a JSON list of host:port
    PROMPTS    file with one prompt per line
    RESULT     file to write: one JSON object per line, in the order of the prompts
    PAUSE      seconds to wait after each prompt (0), to leave time for faults
"""

import json
import os
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

LENGTH = 120
PATIENCE_SECONDS = 120  # for which all replicas may be away at once


def ask(endpoint: str, prompt: str) -> dict:
    body = json.dumps({"prompt": prompt, "length": LENGTH}).encode()
    request = urllib.request.Request(f"http://{endpoint}/complete", data=body)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def ask_any(endpoints: list[str], first: int, prompt: str) -> dict:
    """Ask the replica whose turn it is, and the next ones where it does not answer."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    turn = first
    while True:
        endpoint = endpoints[turn % len(endpoints)]
        try:
            return ask(endpoint, prompt)
        except urllib.error.HTTPError:
            raise  # it answered: another replica would say the same
        except OSError as error:
            print(f"{endpoint} does not answer: {error}", flush=True)
            if time.monotonic() > deadline:
                raise
            turn += 1
            if (turn - first) % len(endpoints) == 0:
                time.sleep(0.5)


def main() -> None:
    endpoints = json.loads(os.environ["ENDPOINTS"])
    prompts = Path(os.environ["PROMPTS"]).read_text(encoding="utf-8").splitlines()
    result = Path(os.environ["RESULT"])
    pause = float(os.environ.get("PAUSE", "0"))
    answers = []
    for turn, prompt in enumerate(prompts):
        answers.append({"prompt": prompt, **ask_any(endpoints, turn, prompt)})
        time.sleep(pause)

    result.parent.mkdir(parents=True, exist_ok=True)
    partial = result.with_name(f".{result.name}.{os.getpid()}")
    partial.write_text("".join(json.dumps(answer) + "\n" for answer in answers), encoding="utf-8")
    partial.rename(result)
    for replica, count in sorted(Counter(answer["replica"] for answer in answers).items()):
        print(f"replica {replica} answered {count} prompts", flush=True)


if __name__ == "__main__":
    main()
