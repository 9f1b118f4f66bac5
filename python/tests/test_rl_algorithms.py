"""Advantages of GRPO, KL penalties and their controllers, against values that were worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fray.rl.algorithms.advantage import EPSILON, grpo_outcome_advantage, last_token_rewards, masked_mean
from fray.rl.algorithms.grpo import GRPOProcessor
from fray.rl.algorithms.kl import AdaptiveKLController, FixedKLController, KLPenalty, kl_penalty
from fray.rl.algorithms.processing import groups_of, grpo, padded, tensors
from fray.rl.config import Config, ConfigError
from fray.rl.nexrl_types import Batch


def test_n47_grpo_normalizes_by_the_std_of_a_sample() -> None:
    rewards = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 6.0]])
    advantages, deviations = grpo_outcome_advantage(rewards, np.ones((3, 2)), ["a", "a", "a"])
    deviation = math.sqrt(((1 - 3) ** 2 + (2 - 3) ** 2 + (6 - 3) ** 2) / 2)  # n - 1
    assert deviations == {"a": pytest.approx(deviation)}
    expected = np.array([1 - 3, 2 - 3, 6 - 3]) / (deviation + 1e-6)
    np.testing.assert_allclose(advantages, np.stack([expected, expected], axis=1), rtol=1e-12)


def test_n47_grpo_singleton() -> None:
    advantages, deviations = grpo_outcome_advantage(np.array([[0.25, 0.5]]), np.ones((1, 2)), [7])
    assert deviations == {7: 1.0}
    np.testing.assert_allclose(advantages, np.full((1, 2), 0.75 / (1 + EPSILON)), rtol=1e-12)


def test_n47_grpo_of_an_equal_group_is_zero() -> None:
    advantages, deviations = grpo_outcome_advantage(np.full((4, 1), 0.5), np.ones((4, 1)), ["g"] * 4)
    assert deviations == {"g": 0.0}
    assert not advantages.any()


def test_n47_grpo_is_masked_and_groups_may_be_mixed() -> None:
    mask = np.array([[1, 1], [1, 0], [1, 1], [0, 0]])
    advantages, _ = grpo_outcome_advantage(np.array([[1.0, 0], [5, 0], [3, 0], [5, 0]]), mask, "abab")
    assert (advantages[mask == 0] == 0).all()
    np.testing.assert_allclose(advantages[:, 0], np.array([-1, 0, 1, 0]) / math.sqrt(2), rtol=1e-5)


def test_n48_the_reward_is_on_the_last_valid_token() -> None:
    mask = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]])
    expected = [[0, 2.0, 0, 0], [0, 0, 3.0, 0], [0, 0, 0, 4.0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(last_token_rewards([2, 3, 4, 5], mask), expected)
    with pytest.raises(ValueError, match="one score for each of 4"):
        last_token_rewards([1, 2], mask)


def trajectories(**fields: Any) -> Batch:
    size = len(next(iter(fields.values())))
    return Batch(dict(fields), {"batch_size": size, "model_tag": "default"})


def test_n49_a_batch_without_groups_is_an_error() -> None:
    batch = trajectories(responses=[[1], [2]], reward=[0.0, 1.0])
    with pytest.raises(ValueError, match="uid or group_id"):
        grpo(batch)
    assert groups_of(trajectories(uid=[1, 2], group_id=["x", "x"])) == [1, 2]
    assert groups_of(trajectories(group_id=np.array([3, 3]))) == [3, 3]


def test_n50_kl_penalties() -> None:
    log_prob, reference = np.array([-1.0, -2.0]), np.array([-1.5, -0.5])
    difference = np.array([0.5, -1.5])
    np.testing.assert_allclose(kl_penalty(log_prob, reference, "kl"), difference)
    np.testing.assert_allclose(kl_penalty(log_prob, reference, "abs"), np.abs(difference))
    np.testing.assert_allclose(kl_penalty(log_prob, reference, "mse"), difference**2 / 2)
    expected = np.exp(-difference) + difference - 1
    np.testing.assert_allclose(kl_penalty(log_prob, reference, "low_var_kl"), expected)
    with pytest.raises(ValueError, match="kl, abs, mse, low_var_kl"):
        kl_penalty(log_prob, reference, "other")


def test_n50_the_low_variance_estimate_is_clamped() -> None:
    far = kl_penalty(np.array([-100.0, 0.0, 0.0]), np.array([0.0, -100.0, -3.0]), KLPenalty.LOW_VAR_KL)
    # exp(5) - 5 - 1 is above 10; exp(-5) + 5 - 1 is not.
    np.testing.assert_allclose(far, [10.0, math.exp(-5) + 4, math.exp(-3) + 2])


def test_n50_estimates_of_many_samples_are_the_divergence() -> None:
    rng = np.random.default_rng(3)
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
    drawn = rng.choice(3, 400_000, p=p)
    exact = float((p * np.log(p / q)).sum())
    for kind in (KLPenalty.KL, KLPenalty.LOW_VAR_KL):
        mean = kl_penalty(np.log(p)[drawn], np.log(q)[drawn], kind).mean()
        assert mean == pytest.approx(exact, abs=1e-3)


def test_n50_controllers() -> None:
    fixed = FixedKLController(0.01)
    fixed.update(100.0, 1000)
    assert fixed.value == 0.01
    for current, error in ((12.0, 0.2), (6.6, 0.1), (6.0, 0.0), (5.4, -0.1), (0.0, -0.2)):
        adaptive = AdaptiveKLController(0.1, target_kl=6.0, horizon=10_000)
        adaptive.update(current, 256)
        assert adaptive.value == pytest.approx(0.1 * (1 + error * 256 / 10_000)), current
    with pytest.raises(ValueError, match="above 0"):
        AdaptiveKLController(0.1, target_kl=0, horizon=1)
    with pytest.raises(ValueError, match="init_kl_coef"):
        AdaptiveKLController(math.nan, target_kl=1, horizon=1)


def test_rewards_lose_the_kl_penalty() -> None:
    batch = trajectories(
        responses=[[1, 2], [3]],
        reward=[1.0, 0.0],
        uid=["g", "g"],
        log_probs=[[-1.0, -1.0], [-2.0]],
        ref_log_prob=[[-2.0, -1.0], [-4.0]],
    )
    controller = AdaptiveKLController(0.5, target_kl=1.0, horizon=10)
    done, metrics = grpo(batch, controller=controller)
    np.testing.assert_allclose(done.values["token_level_rewards"], [[-0.5, 1.0], [-1.0, 0.0]])
    assert metrics["critic/kl"] == pytest.approx((0.5 + 2.0) / 2)
    assert metrics["critic/kl_coeff"] == 0.5
    assert controller.value == pytest.approx(0.5 * (1 + 0.2 * 2 / 10))


def test_responses_are_padded_and_masked() -> None:
    batch = trajectories(
        responses=[[4, 5, 6], [7]],
        prompts=[[1], [2, 3]],
        loss_mask=[[0, 1, 0, 1], [0, 0, 1]],  # those of prompts come first
        log_probs=[[-1.0, -2.0, -3.0], [-4.0]],
    )
    done = tensors(batch, pad_token_id=9)
    np.testing.assert_array_equal(done.values["responses"], [[4, 5, 6], [7, 9, 9]])
    np.testing.assert_array_equal(done.values["prompts"], [[9, 1], [2, 3]])
    np.testing.assert_array_equal(done.values["response_mask"], [[1, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(done.values["old_log_probs"], [[-1, -2, -3], [-4, 0, 0]])
    with pytest.raises(ValueError, match="old_log_probs of trajectory 1 has 2 values"):
        tensors(trajectories(responses=[[1], [1]], log_probs=[[0.0], [0.0, 0.0]]))


def test_metrics_name_groups_and_scores() -> None:
    batch = trajectories(
        responses=[[1]] * 4,
        reward=[0.0, 1.0, 1.0, 1.0],
        group_id=["a", "a", "b", "b"],
        score=[{"exact": 1.0}, {"exact": 0.0}, {"exact": 0.0}, {"note": "x"}],
    )
    done, metrics = grpo(batch)
    assert metrics["critic/grpo_num"] == 2
    assert metrics["critic/grpo_std/max"] == pytest.approx(math.sqrt(0.5))
    assert metrics["critic/grpo_std/min"] == 0
    assert metrics["rollout/reward"] == 0.75
    assert metrics["rollout/exact"] == pytest.approx(1 / 3)
    assert done.values["advantages"].shape == (4, 1)
    assert "advantages" not in batch.values


def test_padding_and_means_of_empty_rows() -> None:
    np.testing.assert_array_equal(padded([[], [1.0]], 0.0), [[0.0], [1.0]])
    np.testing.assert_array_equal(masked_mean(np.ones((2, 3)), np.array([[0, 0, 0], [1, 1, 0]])), [0, 1])


def test_fields_of_rollout_workers_are_understood() -> None:
    """SimpleRolloutWorker and AgentRolloutWorker have these fields."""
    simple = tensors(
        trajectories(
            tokens=[[1, 2, 8], [3, 9]],
            loss_mask=[[0, 0, 1], [0, 1]],
            response_tokens=[[8], [9]],
            response_logprobs=[[-1.0], [-2.0]],
        )
    )
    np.testing.assert_array_equal(simple.values["responses"], [[8], [9]])
    np.testing.assert_array_equal(simple.values["response_mask"], [[1], [1]])
    agent = tensors(
        trajectories(tokens=[[1, 8, 2, 9]], loss_mask=[[0, 1, 0, 1]], logprobs=[[0.0, -1.0, 0.0, -2.0]])
    )
    np.testing.assert_array_equal(agent.values["response_mask"], [[0, 1, 0, 1]])
    np.testing.assert_array_equal(agent.values["old_log_probs"], [[0, -1, 0, -2]])
    with pytest.raises(ValueError, match="no field responses"):
        tensors(trajectories(prompt=["x"]))


class Pool:
    """Takes batches."""

    def __init__(self) -> None:
        self.batches: list[tuple[Batch, str]] = []

    def put_batch(self, batch: Batch, update_fn: str) -> bool:
        self.batches.append((batch, update_fn))
        return True


def test_n100_the_processor_of_the_configuration() -> None:
    pool = Pool()
    processor = GRPOProcessor({"use_kl_in_reward": True, "kl_ctrl": {"type": "adaptive", "kl_coef": 0.5}})
    processor.set_module_references(None, pool)
    processor._fit(trajectories(responses=[[1], [2]], reward=[0.0, 1.0], uid=[1, 1]), "update_actor")
    ((batch, update_fn),) = pool.batches
    assert update_fn == "update_actor"
    np.testing.assert_allclose(batch.values["advantages"][:, 0], np.array([-1, 1]) / math.sqrt(2), rtol=1e-5)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"kl_penalty": "k2"}, "kl_penalty: want one of kl, abs"),
        ({"use_kl_in_reward": True, "kl_ctrl": {"type": "other"}}, "kl_ctrl.type"),
        ({"use_kl_in_reward": True, "kl_ctrl": {"type": "adaptive", "target_kl": 0}}, "above 0"),
    ],
)
def test_a_wrong_configuration_is_an_error(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GRPOProcessor(config)


class Tracker:
    """Takes everything."""

    def start(self, module: str, work: str) -> str:
        return f"{module} {work}"

    def end(self, token: str) -> None:
        pass

    def report_exception(self, *_: Any) -> str:
        return "known"


def test_n50_a_batch_that_is_processed_again_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coefficient learns of a batch when it is queued, and not at a try that failed."""
    from fray.rl import algorithm

    monkeypatch.setattr(algorithm, "_LONGEST_PAUSE", 0.0)
    ctrl = {"type": "adaptive", "kl_coef": 0.1, "target_kl": 0.01, "horizon": 10}
    processor = GRPOProcessor(Config({"use_kl_in_reward": True, "kl_ctrl": ctrl}))
    states: list[Any] = []

    class Away:
        def put_batch(self, batch: Batch, update_fn: str) -> bool:
            states.append((batch.metadata["algorithm_state"], update_fn))
            if len(states) == 1:
                raise ConnectionError("the pool is away")
            return True

    processor.set_module_name("p")
    processor.set_module_references(None, Away())
    processor.set_activity_tracker(Tracker())  # type: ignore[arg-type]
    values = {
        "responses": [[1], [2]],
        "log_probs": [[-0.1], [-0.2]],
        "ref_log_prob": [[-0.5], [-0.9]],
        "reward": [1.0, 0.0],
        "group_id": ["g", "g"],
    }
    processor._process(Batch(values, {"batch_size": 2}))
    assert processor._controller is not None
    learned = 0.1 * (1 + 0.2 * 2 / 10)
    assert processor._controller.value == pytest.approx(learned)
    state = {"name": "p", "state": {"kl_coef": pytest.approx(learned)}}
    assert states == [(state, "update_actor")] * 2


def test_n50_a_batch_that_is_dropped_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    from fray.rl import algorithm

    monkeypatch.setattr(algorithm, "_LONGEST_PAUSE", 0.0)
    ctrl = {"type": "adaptive", "kl_coef": 0.1, "target_kl": 0.01, "horizon": 10}
    processor = GRPOProcessor(Config({"use_kl_in_reward": True, "kl_ctrl": ctrl}))

    class Broken:
        def put_batch(self, batch: Batch, update_fn: str) -> bool:
            raise ConnectionError(f"no room for {len(batch)} trajectories of {update_fn}")

    processor.set_module_references(None, Broken())
    processor.set_activity_tracker(Tracker())  # type: ignore[arg-type]
    values = {
        "responses": [[1]],
        "log_probs": [[-0.1]],
        "ref_log_prob": [[-0.5]],
        "reward": [1.0],
        "group_id": ["g"],
    }
    processor._process(Batch(values, {"batch_size": 1}))
    assert processor._kept.begin("another")[0] == {}


def test_n50_a_divergence_that_is_not_finite_is_an_error() -> None:
    values = {
        "responses": [[1, 2], [3, 4]],
        "log_probs": [[-0.1, -0.1], [-0.2, math.nan]],
        "ref_log_prob": [[-0.5, -0.5], [-0.9, -0.9]],
        "reward": [1.0, 0.0],
        "group_id": ["g", "g"],
    }
    controller = AdaptiveKLController(0.1, 6.0, 10)
    with pytest.raises(ValueError, match="trajectory 1 is not finite"):
        grpo(trajectories(**values), controller=controller)
    assert controller.value == 0.1
    masked = {**values, "loss_mask": [[1, 1], [1, 0]]}  # what does not count may be anything
    _, metrics = grpo(trajectories(**masked), controller=controller)
    assert math.isfinite(metrics["critic/kl"])
    assert math.isfinite(controller.value)
