"""A campaign on disk as the tool sees it: its plan, what became of every planned run, files whole or not at all.

Only this package and the node half's writer know where a file of a campaign stands.
"""
