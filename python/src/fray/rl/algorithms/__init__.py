"""Advantages of trajectories, KL penalties, and the processor of GRPO. Formulas name their source."""
