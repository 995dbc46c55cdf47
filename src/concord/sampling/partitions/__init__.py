"""Partitions: ways to divide rows of data among agents, one module each.

``kind_contracts.PartitionKind`` has what they share.
"""
