"""Planning and rendering a campaign: beside ReFrame's dry run of as many tests, and its memory as campaigns grow."""
