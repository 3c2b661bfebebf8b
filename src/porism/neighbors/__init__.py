"""Neighborhoods: where neighbors come from, whether their answers can be trusted, and which are worth anything."""
