"""The parts of the exact neighbour graph, which neighbors.py puts together."""
