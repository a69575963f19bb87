"""Calibration: thousands of simulated campaigns through the gate that judges real ones."""
