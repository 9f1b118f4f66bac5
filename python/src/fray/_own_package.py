"""Fails to be imported where `fray/__init__.py` is of another distribution. Each room imports it first."""

import fray
from fray import _distribution

_distribution.require(fray)
