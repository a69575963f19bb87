"""From run directories to one table of samples, and from that table to the input of the statistics."""
