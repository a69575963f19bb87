"""All figures of a machine with GPUs in twenty minutes."""
