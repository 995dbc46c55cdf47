"""Samplers, one module per algorithm: a class of its options, with ``step`` (``concord.sampler``).

Modules are found by their file name; what several refuse is in ``checks``.
"""
