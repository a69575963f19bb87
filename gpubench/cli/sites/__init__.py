"""The group ``gpubench sites``: the profiles of machines, and jobs that check or clean their nodes."""
