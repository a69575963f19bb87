"""Many importers of one image at once: ours, and the check for a file that prior scripts make."""
