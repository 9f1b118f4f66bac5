"""Fails to be imported where `fray/__init__.py` is another distribution's, which each room of the package imports."""

import fray
from fray import _distribution

_distribution.require(fray)
