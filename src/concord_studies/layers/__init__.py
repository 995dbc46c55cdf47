"""The layers of a panel of curves, a file each (``figures/_layer.py``)."""
