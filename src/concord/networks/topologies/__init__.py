"""Topologies: kinds of graphs, one module each (see ``topology.TopologyKind``)."""
