"""porism ranks candidate solutions by their consequences: see `porism.rank`."""

__version__ = "0.1.0"
