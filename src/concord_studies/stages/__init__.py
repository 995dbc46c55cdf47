"""The stages draw, judge, survey and compete: each reads metrics and writes results, whole.

``stated`` of a stage returns what its results are made from beside metrics: planning writes it.
"""
