"""Calibration: thousands of simulated campaigns through the verdict rule that judges real ones."""
