"""The stages resolve, sample, measure, draw and judge: each reads files and writes results, whole.

``made`` of a stage returns what its results are made from: it writes that beside them, and the
workflow compares it with what is there (see ``concord_studies.integrity``).
"""
