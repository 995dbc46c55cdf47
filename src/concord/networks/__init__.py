"""Networks: graphs over agents, effects on their vectors, and counts of messages.

Each word has one meaning here:

agent
    a node of the graph; it *hears* a neighbor that can send to it;
edge
    what joins two agents in the graph: both hear each other, or in a directed graph the second
    hears the first;
arc
    a directed edge, from a sender to a receiver: an edge is two arcs, in a directed graph one;
    arrays over arcs, (arcs, ...), are ordered by receiver and then by sender;
link
    two agents that are joined, whatever the direction; a link is up or down, with all its arcs;
channel
    carries one vector of every agent over all arcs in an iteration. A sampler that sends two
    vectors opens two, and what is heard over one is remembered apart from the other;
traffic
    which links are up, which agents are awake and over which arcs vectors arrive, in an iteration;
lossless
    a network on which every vector arrives at once, unchanged.

A vector may be hidden (``privacy``), compressed, or replaced by a lie before it is sent, lost or
late over an arc, and changed by noise and by robust mixing where it is heard.
"""
