"""Verdicts, power and calibration: pure functions of their arguments, no disk, no clock, no network."""
