"""A standing cluster as a library: start, join, grow, shrink, inspect and stop it. Campaigns never use one."""
