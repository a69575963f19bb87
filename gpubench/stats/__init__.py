"""Verdicts and power: pure functions of their arguments, no disk, no clock, no network."""
