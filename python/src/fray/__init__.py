"""Launch ML jobs on a fray cluster, or on this machine with the same code.

Start with `fray.cluster` (jobs, groups and reservations) or with the smaller
`fray.v2` (submit a job, get a handle). What the package does not do is decide
anything: placement, retries and sharing are the cluster's.
"""

from fray import _distribution

__fray_ml__ = True

_distribution.warn_of_others()
