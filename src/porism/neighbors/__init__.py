"""Neighbors: where they come from, whether their answers can be trusted, and which of them are worth anything."""
