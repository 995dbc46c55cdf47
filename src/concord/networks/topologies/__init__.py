"""Topologies: kinds of graphs, one module each (see ``contracts.TopologyKind``)."""
