"""The Python API behind ``import concord``: what a notebook does, with the pipeline's numbers."""
