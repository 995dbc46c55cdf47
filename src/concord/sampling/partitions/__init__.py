"""Partitions: ways to divide rows of data among agents, one module each.

``contracts.PartitionKind`` has what they share.
"""
