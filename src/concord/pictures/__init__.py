"""Pictures of traces, laws and networks, with matplotlib, which nothing else here imports."""
