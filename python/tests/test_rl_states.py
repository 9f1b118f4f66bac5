"""The state of algorithm processors: kills at each point, checkpoints, and resumed runs with KL on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import training_runs
from fray.cluster import LocalCluster
from fray.rl import ActivityTrackerProxy, Batch, Config, GRPOProcessor, NexRLRole, TrainBatchPool
from fray.rl.batch_states import STATES, BatchStates, ReplacedError, take_state, with_state
from fray.rl.hosts import actor_of
from fray.rl.train.checkpoints import CheckpointError
from fray.rl.train.worker import TrainWorker
from fray.rl.wire import pack, unpack_batch
from rl_run import Run
from training_runs import Direct, FileWeights, Momentum, config_of

NAME = "algorithm_processor_0"
FIRST = 0.5
STEPS = 5


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def run() -> Iterator[Run]:
    with LocalCluster() as cluster:
        made = Run(cluster)
        yield made
        made.server.shutdown()


def batch_of(number: int) -> dict[str, Any]:
    """A batch of two trajectories, whose KL divergence is another one for each number."""
    rng = np.random.default_rng(number)
    trajectories = [
        {
            "responses": [1, 2],
            "log_probs": list(-rng.random(2)),
            "ref_log_prob": list(-rng.random(2) - number),
            "reward": float(rng.random()),
            "group_id": "g",
        }
        for _ in range(2)
    ]
    payloads = [pack(trajectory) for trajectory in trajectories]
    return {"id": f"b{number}", "metadata": {"batch_size": 2}, "payloads": payloads, "headers": []}


def processor_of(run: Run, out: Path, kind: str = "adaptive") -> GRPOProcessor:
    ctrl = {"type": kind, "kl_coef": FIRST, "target_kl": 1.0, "horizon": 8}
    one = GRPOProcessor(Config({"use_kl_in_reward": True, "kl_ctrl": ctrl, "out": str(out)}))
    one.set_module_name(NAME)
    one.set_module_references(run.handle("trajectory_pool"), run.handle("train_batch_pool"))
    one.set_activity_tracker(ActivityTrackerProxy(run.handle("activity_tracker")))
    return one


def process(processor: GRPOProcessor) -> bool:
    """Process one batch; return whether there was one."""
    batch = processor._take(None)
    if batch is not None:
        processor._process(batch)
    return batch is not None


def queued(run: Run) -> list[tuple[str, bytes]]:
    return [(batch["id"], bytes(batch["payload"])) for batch in run.train_pool.batches]


def killed_when_keeping(one: GRPOProcessor) -> None:
    def keep(*_: Any) -> bool:
        raise Killed

    one._keep = keep  # type: ignore[method-assign, assignment]


def killed_before_the_end(one: GRPOProcessor) -> None:
    def acknowledge() -> None:
        raise Killed

    one._acknowledge = acknowledge  # type: ignore[method-assign]


def killed_after_the_end(one: GRPOProcessor) -> None:
    acknowledge = one._acknowledge

    def and_die() -> None:
        acknowledge()
        raise Killed

    one._acknowledge = and_die  # type: ignore[method-assign]


def killed_when_queueing(one: GRPOProcessor) -> None:
    def put(*_: Any) -> bool:
        raise Killed

    one._put_batch = put  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize(
    "kill", [killed_when_queueing, killed_when_keeping, killed_before_the_end, killed_after_the_end]
)
def test_n50_each_batch_counts_once_wherever_its_processor_is_killed(
    run: Run, tmp_path: Path, kill: Any
) -> None:
    run.pool.batches.extend(map(batch_of, range(3)))
    whole = processor_of(run, tmp_path / "whole")
    while process(whole):
        pass
    expected = queued(run)
    assert (
        len(
            {unpack_batch(payload).metadata["algorithm_state"]["state"]["kl_coef"] for _, payload in expected}
        )
        == 3
    )
    run.train_pool.batches.clear()
    run.train_pool.known.clear()

    run.pool.batches.extend(map(batch_of, range(3)))
    while run.pool.batches:  # a batch that is not acknowledged comes again
        victim = processor_of(run, tmp_path / "killed")
        victim._release()
        kill(victim)
        with pytest.raises(Killed):
            process(victim)
        healthy = processor_of(run, tmp_path / "killed")
        healthy._release()
        process(healthy)
    assert queued(run) == expected


class Learning(Momentum):
    """A model that depends on the rewards, from which the KL penalty is taken."""

    def update(self, batch: Batch) -> dict[str, float]:
        assert "algorithm_state" not in batch.metadata
        self.w = 0.9 * self.w + float(np.asarray(batch.values["token_level_rewards"]).mean())
        return {}


class Training:
    """A processor and a train worker that make steps by turns."""

    def __init__(self, run: Run, out: Path, batches: range) -> None:
        run.pool.batches.clear()
        run.train_pool.batches.clear()
        run.train_pool.known.clear()
        run.pool.batches.extend(map(batch_of, batches))
        self.processor = processor_of(run, out)
        config = config_of(out, save_freq=2, total_train_steps=STEPS, remove_previous_ckpt=False)
        self.worker = TrainWorker(config, Direct(Learning()))
        self.worker.set_module_name("train_worker_0")
        pool = TrainBatchPool(run.handle("train_batch_pool"))
        self.worker.set_module_references(pool, FileWeights(out / "version"))
        self.worker.initialize_workers()

    def load(self, path: str) -> None:
        """As the controller does."""
        self.worker.load_checkpoint(path)
        self.processor.load_checkpoint(path)

    def steps(self, number: int) -> None:
        for _ in range(number):
            assert process(self.processor)
            taken = self.worker._take(self.worker.get_train_step() + 1)
            assert taken is not None
            self.worker._step(taken.batch, taken.id)

    def outcome(self) -> tuple[int, float, str]:
        assert self.processor._controller is not None
        coefficient = self.processor._controller.value
        return self.worker.get_train_step(), coefficient, training_runs.digest(self.worker)


def test_n58_a_resumed_run_with_kl_equals_an_uninterrupted_one(run: Run, tmp_path: Path) -> None:
    """All processes are killed after the update of step 3, before the checkpoint of step 4."""
    (tmp_path / "whole").mkdir()
    whole = Training(run, tmp_path / "whole", range(STEPS))
    whole.load("")
    whole.steps(STEPS)

    out = tmp_path / "interrupted"
    out.mkdir()
    Training(run, out, range(STEPS)).steps(3)
    resumed = Training(run, out, range(2, STEPS))
    checkpoint = out / "checkpoints" / "global_step_2"
    resumed.load(str(checkpoint))
    resumed.steps(STEPS - 2)
    assert resumed.outcome() == whole.outcome()
    for step in (2, 4):
        name = Path("checkpoints") / f"global_step_{step}" / STATES
        assert (out / name).read_text() == (tmp_path / "whole" / name).read_text()
    assert json.loads((checkpoint / STATES).read_text())[NAME]["kl_coef"] != FIRST


def test_n50_a_processor_that_goes_on_alone_has_its_coefficient(run: Run, tmp_path: Path) -> None:
    """It is ahead of the last checkpoint, which is not for it then; a fresh run begins with the first."""
    run.pool.batches.extend(map(batch_of, range(2)))
    first = processor_of(run, tmp_path)
    process(first)
    assert first._state()["kl_coef"] != FIRST
    second = processor_of(run, tmp_path)
    process(second)
    assert second._kept.begin("another")[0] == second._state()
    third = processor_of(run, tmp_path)
    assert third._kept.begin("another")[0] == second._state()
    third.load_checkpoint("")
    assert processor_of(run, tmp_path)._kept.begin("another")[0] == {}


def test_a_batch_that_ends_after_the_run_went_back_changes_nothing(run: Run, tmp_path: Path) -> None:
    run.pool.batches.append(batch_of(1))
    one = processor_of(run, tmp_path)
    put = one._put_batch

    def and_go_back(batch: Batch, update_fn: str) -> bool:
        one.load_checkpoint("")
        return put(batch, update_fn)

    one._put_batch = and_go_back  # type: ignore[method-assign]
    process(one)
    assert run.pool.acked.values == []
    assert one._kept.begin("another")[0] == {}


def test_checkpoints_that_are_not_here(run: Run, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"there is no checkpoint .* all hosts of the run share"):
        processor_of(run, tmp_path).load_checkpoint(str(tmp_path / "global_step_2"))
    processor_of(run, tmp_path, "fixed").load_checkpoint(str(tmp_path / "global_step_2"))  # it needs none
    (tmp_path / "global_step_3").mkdir()
    adaptive = processor_of(run, tmp_path)
    adaptive.load_checkpoint(str(tmp_path / "global_step_3"))  # of a run without KL
    assert adaptive._kept.begin("another")[0] == {}
    (tmp_path / "global_step_3" / STATES).write_text("[1]")
    with pytest.raises(CheckpointError, match="is no JSON object"):
        adaptive.load_checkpoint(str(tmp_path / "global_step_3"))


def test_files_that_cannot_be_read_are_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "algorithm" / f"{NAME}.json"
    file.parent.mkdir()
    for text, problem in (("{", "cannot be read"), ('{"x": 1}', "is no state of an algorithm processor")):
        file.write_text(text)
        with pytest.raises(CheckpointError, match=problem):
            processor_of(run, tmp_path).run()


def test_a_disk_that_is_full_is_waited_for(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fray.rl import algorithm

    monkeypatch.setattr(algorithm, "_LONGEST_PAUSE", 0.0)
    run.pool.batches.append(batch_of(1))
    one = processor_of(run, tmp_path)
    keep, failed = one._kept.keep, list[Any]()

    def full(*args: Any) -> None:
        if len(failed) < 2:
            failed.append(args)
            raise OSError("no space left on device")
        keep(*args)

    one._kept.keep = full  # type: ignore[method-assign, assignment]
    process(one)
    assert run.pool.acked.values == ["b1"]
    assert [error[2]["message"] for error in run.tracker.errors.values] == ["no space left on device"] * 2


def test_states_of_one_processor(tmp_path: Path) -> None:
    states = BatchStates(tmp_path, "p")
    before, life = states.begin("a")
    states.keep("a", before, {"n": 1}, life)
    again = BatchStates(tmp_path, "p")
    assert (again.begin("a")[0], again.begin("b")[0]) == ({}, {"n": 1})
    _, life = again.begin("b")
    again.reset({"n": 5})
    with pytest.raises(ReplacedError, match="batch b counts no more"):
        again.keep("b", {"n": 1}, {"n": 2}, life)
    assert BatchStates(tmp_path, "p").begin("b")[0] == {"n": 5}
    assert BatchStates("", "p").begin("b")[0] == {}


def test_batches_without_state_stay_as_they_are() -> None:
    batch = Batch({"x": [1]}, {"batch_size": 1})
    assert with_state(batch, "p", {}) is batch
    assert take_state(batch) == (batch, {})
    carrying = with_state(batch, "p", {"n": 1})
    assert "algorithm_state" not in batch.metadata
    assert take_state(carrying) == (batch, {"p": {"n": 1}})


def test_subclasses_keep_their_own_state(run: Run, tmp_path: Path) -> None:
    class Counting(GRPOProcessor):
        seen = 0
        _has_state = True

        def _fit(self, batch: Batch, update_fn: str) -> None:
            self.seen += len(batch)
            super()._fit(batch, update_fn)

        def _state(self) -> dict[str, Any]:
            return {"seen": self.seen} if self.seen else {}

        def _restore(self, state: Mapping[str, Any]) -> None:
            self.seen = int(state.get("seen", 0))

    def made() -> Counting:
        one = Counting(Config({"out": str(tmp_path)}))
        one.set_module_name(NAME)
        one.set_module_references(run.handle("trajectory_pool"), run.handle("train_batch_pool"))
        one.set_activity_tracker(ActivityTrackerProxy(run.handle("activity_tracker")))
        return one

    run.pool.batches.extend(map(batch_of, range(2)))
    process(made())
    second = made()
    process(second)
    assert second.seen == 4


def test_a_processor_of_another_base_has_no_state() -> None:
    class Plain:
        def run(self) -> str:
            return "runs"

    host = actor_of(NexRLRole.ALGORITHM_PROCESSOR, Plain())
    host.load_checkpoint("/global_step_3")
    assert host.run() == "runs"
    assert host.health_check()
