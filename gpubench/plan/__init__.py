"""From what the user asked to what will be run: pure and deterministic from the seed."""
