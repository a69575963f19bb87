"""Campaigns and standing clusters on disk: what was planned, and what became of every planned run."""
