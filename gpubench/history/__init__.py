"""Results over time, of campaigns and imports alike: what was measured when, what wasn't and why, and what changed."""
