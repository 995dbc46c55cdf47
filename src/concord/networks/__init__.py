"""Networks: graphs over agents, effects on their vectors, and counts of messages."""
