"""Data processing: many jobs on processors, which read and write shards in shared storage.

Run it with `python examples/cluster/processing.py`.
"""

import gzip
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fray.cluster import Cluster, Entrypoint, JobRequest, ResourceConfig, current_cluster


@dataclass
class TransformConfig:
    """What is read, and where results go. On a cluster both are in storage that all hosts share."""

    input_directory: str
    output_directory: str
    max_parallelism: int = 100
    memory_per_worker: str = "512m"


def transform_document(doc: dict[str, Any]) -> dict[str, Any]:
    """Transform a single document."""
    return {
        "id": doc["id"],
        "text": doc["text"].lower(),
        "token_count": len(doc["text"].split()),
    }


def transform_shards(inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Work on some of the shards. It may be done again: what is complete is not touched."""
    for source, target in zip(inputs, outputs, strict=True):
        if Path(target).exists():
            continue
        documents = [json.loads(line) for line in Path(source).read_text().splitlines()]
        results = [doc for doc in map(transform_document, documents) if doc["token_count"] > 2]
        part = Path(f"{target}.part")
        with gzip.open(part, "wt") as file:
            file.writelines(json.dumps(doc) + "\n" for doc in results)
        part.rename(target)
        print(f"{source}: {len(results)} of {len(documents)} documents")


def run_transform(config: TransformConfig, cluster: Cluster | None = None) -> list[str]:
    """Run the transformation on workers, each of which has some of the shards."""
    cluster = cluster or current_cluster()
    inputs = sorted(str(path) for path in Path(config.input_directory).glob("*.jsonl"))
    outputs = [f"{config.output_directory}/output-{i:05d}.jsonl.gz" for i in range(len(inputs))]
    workers = min(config.max_parallelism, len(inputs))

    jobs = [
        cluster.launch(
            JobRequest(
                name=f"transform-{i}",
                resources=ResourceConfig.with_cpu(cpu=1, ram=config.memory_per_worker),
                entrypoint=Entrypoint.from_callable(
                    transform_shards, args=(inputs[i::workers], outputs[i::workers])
                ),
                max_retries_failure=2,
            )
        )
        for i in range(workers)
    ]
    cluster.wait(jobs, raise_on_failure=True)
    return outputs


def write_documents(directory: str, shards: int, documents: int) -> None:
    """Make documents to work on."""
    for shard in range(shards):
        lines = [
            json.dumps({"id": f"{shard}/{i}", "text": "Some Words " * i}) + "\n" for i in range(documents)
        ]
        Path(directory, f"{shard:05d}.jsonl").write_text("".join(lines))


def main() -> list[str]:
    """Process a few documents in a directory of their own."""
    directory = Path(tempfile.mkdtemp(prefix="fray-processing-"))
    (directory / "out").mkdir()
    write_documents(str(directory), shards=6, documents=20)
    outputs = run_transform(TransformConfig(str(directory), str(directory / "out"), max_parallelism=3))
    print(f"wrote {len(outputs)} files to {directory / 'out'}")
    return outputs


if __name__ == "__main__":
    main()
