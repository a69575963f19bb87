"""From the plan to files: scripts, run specs and the node half. Pure: values in, path → bytes out."""
