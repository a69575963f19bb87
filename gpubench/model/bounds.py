"""The most that a person may ask for, where more would be years of measuring; help reads it, and no pydantic."""

MOST_BLOCKS = 100_000
MOST_REPS = 1_000_000
