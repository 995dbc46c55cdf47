"""The Python API behind ``import concord``, which gives the same numbers as the pipeline."""
