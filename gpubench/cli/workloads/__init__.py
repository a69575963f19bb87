"""Workloads: what can be measured, and ``measure``: one of them by itself."""
