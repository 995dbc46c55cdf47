"""The layers of a panel of curves, a file each (``figures/layer.py``)."""
