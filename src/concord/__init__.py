"""Concord: reproduce and compare decentralized Bayesian samplers."""

__version__ = "0.1.0"
