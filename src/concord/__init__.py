"""Concord: reproduce and compare decentralized Bayesian samplers."""

__version__ = "0.2.0"
