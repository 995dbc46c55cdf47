"""On what an assumption rests: the runs that its ``rests`` selects (``concord.selection``).

``rests: {sampler: [de_sgld, de_sghmc], topology: ring}`` holds for every run of these samplers on a
ring. Without ``rests`` an assumption holds for all runs.
"""

from concord.selection import matches as holds_for
from concord.selection import mistake

__all__ = ["holds_for", "mistake"]
