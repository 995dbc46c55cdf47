"""Samplers on simulated networks, and their exact laws."""
