"""``gpubench cluster``: start, look at, grow, shrink, stop, verify."""
