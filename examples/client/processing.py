"""Data processing: a group of workers, to which this program hands shards.

Run it with `python examples/client/processing.py`.

Workers read and write files in shared storage, so that calls carry paths only. What a worker fails at is
given to another one.
"""

import json
import tempfile
from pathlib import Path

from fray.rpc.errors import ActorError
from fray.v2 import ResourceConfig, current_client


class Worker:
    """Works on shards."""

    def __init__(self, bad_shard: int) -> None:
        self.bad_shard = bad_shard
        self.failed = False

    def run_shard(self, source: str, target: str) -> int:
        """Count the words of the documents in a file, and return how many documents there were."""
        if source.endswith(f"{self.bad_shard:05d}.jsonl") and not self.failed:
            self.failed = True
            raise OSError(f"{source} cannot be read now")
        documents = [json.loads(line) for line in Path(source).read_text().splitlines()]
        part = Path(f"{target}.part")
        part.write_text(json.dumps([len(document["text"].split()) for document in documents]))
        part.rename(target)  # a shard is there whole or not at all
        return len(documents)


def write_documents(directory: Path, shards: int, documents: int) -> list[str]:
    """Make documents to work on, and return the files."""
    paths = []
    for shard in range(shards):
        path = directory / f"{shard:05d}.jsonl"
        lines = (json.dumps({"text": "some words " * (shard + i)}) + "\n" for i in range(documents))
        path.write_text("".join(lines))
        paths.append(str(path))
    return paths


def main() -> None:
    """Process a few documents in a directory of their own."""
    client = current_client()
    directory = Path(tempfile.mkdtemp(prefix="fray-processing-"))
    sources = write_documents(directory, shards=6, documents=20)
    targets = [f"{source}.counts" for source in sources]
    group = client.create_actor_group(
        Worker, 2, name="zephyr-worker", count=2, resources=ResourceConfig(cpu=0.25, ram="200m")
    )
    workers = group.wait_ready(timeout=600)

    waiting = [(i, workers[i % len(workers)]) for i in range(len(sources))]
    documents = tries = 0
    while waiting:
        tries += len(waiting)
        calls = [(i, worker, worker.run_shard.remote(sources[i], targets[i])) for i, worker in waiting]
        waiting = []
        for i, worker, call in calls:
            try:
                documents += call.result(timeout=600)
            except ActorError:
                waiting.append((i, workers[(workers.index(worker) + 1) % len(workers)]))

    words = sum(sum(json.loads(Path(target).read_text())) for target in targets)
    print(f"result: {documents} documents, {words} words, {tries} tries")
    group.terminate()
    client.shutdown()


if __name__ == "__main__":
    main()
