"""The store's writer: append samples, finish a run by rename."""
