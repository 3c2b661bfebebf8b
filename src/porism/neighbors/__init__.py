"""Neighbors: the questions with known answers that a candidate is judged by, and where they come from."""
