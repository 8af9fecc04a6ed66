"""Answer millions of queries about a sensitive table, and publish synthetic rows, under differential privacy."""

__version__ = "0.1.0"
