"""Scores of predictions against fresh runs and against the truth."""
