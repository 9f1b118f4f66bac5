"""The algorithm processor of GRPO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fray.rl.algorithm import BaseAlgorithmProcessor
from fray.rl.algorithms.kl import AdaptiveKLController, FixedKLController, KLController, KLPenalty
from fray.rl.algorithms.processing import grpo
from fray.rl.config import ConfigError, setting
from fray.rl.nexrl_types import Batch

_COEFFICIENT = "kl_coef"  # in the state


class GRPOProcessor(BaseAlgorithmProcessor):
    """Gives each token of a response the advantage of its trajectory within its group.

    Trajectories have `responses` (the tokens of the response), `reward`, and `uid` or `group_id`; `prompts`,
    `log_probs`, `ref_log_prob` and `loss_mask` are used where they are there. `fray.rl.algorithms.processing`
    has what the train service gets of them.

    The coefficient of an adaptive KL controller is kept in checkpoints: a resumed run goes on with that of
    its step, whatever `kl_ctrl.kl_coef` is then.
    """

    def __init__(self, config: Any) -> None:
        """Make a processor.

        Args:
            config: the section algorithm, with `use_kl_in_reward`, `kl_penalty`, `kl_ctrl` (see
                `kl_controller`) and `pad_token_id`.

        Raises:
            ConfigError: a value is not one of those that are known.
        """
        super().__init__(config)
        self._controller = kl_controller(config) if setting(config, "use_kl_in_reward", False) else None
        self._first = self._controller.value if self._controller is not None else 0.0
        self._kind = str(setting(config, "kl_penalty", KLPenalty.KL))
        if self._kind not in set(KLPenalty):
            raise ConfigError(f"algorithm.kl_penalty: want one of {', '.join(KLPenalty)}, got {self._kind!r}")
        self._pad = int(setting(config, "pad_token_id", 0))

    def _fit(self, batch: Batch, update_fn: str) -> None:
        """Compute the advantages of a batch of trajectories, and put it to the train batch pool."""
        self.easy_dump(batch.to_dict(), ["rollout_result"])
        trainable, metrics = grpo(batch, pad_token_id=self._pad, controller=self._controller, kind=self._kind)
        self._put_batch(trainable, update_fn)
        self._post_metrics(metrics)

    @property
    def _has_state(self) -> bool:
        return isinstance(self._controller, AdaptiveKLController)

    def _state(self) -> dict[str, Any]:
        """Return the coefficient, where that adapts."""
        controller = self._controller
        return {_COEFFICIENT: controller.value} if isinstance(controller, AdaptiveKLController) else {}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a coefficient; without one to the first."""
        if isinstance(self._controller, AdaptiveKLController):
            self._controller.value = float(state.get(_COEFFICIENT, self._first))


def kl_controller(config: Any) -> KLController:
    """Return the controller of a section algorithm.

    `kl_ctrl.type` is "fixed" (the default), with `kl_ctrl.kl_reward_coef` or `kl_ctrl.kl_coef`, or
    "adaptive", with `kl_ctrl.target_kl` and `kl_ctrl.horizon` besides.

    Raises:
        ConfigError: it is another type, or its numbers cannot be used.
    """
    kind = setting(config, "kl_ctrl.type", "fixed")
    coefficient = setting(config, "kl_ctrl.kl_reward_coef", setting(config, "kl_ctrl.kl_coef", 0.001))
    if kind == "fixed":
        return FixedKLController(float(coefficient))
    if kind == "adaptive":
        target, horizon = (
            setting(config, "kl_ctrl.target_kl", 6.0),
            setting(config, "kl_ctrl.horizon", 10_000),
        )
        try:
            return AdaptiveKLController(float(coefficient), float(target), float(horizon))
        except ValueError as err:
            raise ConfigError(str(err)) from err
    raise ConfigError(f'algorithm.kl_ctrl.type: want "fixed" or "adaptive", got {kind!r}')
