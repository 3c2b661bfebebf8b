"""Neighborhoods: where neighbors come from, and which of them are worth anything."""
