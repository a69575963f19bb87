"""From run directories or a user's table to samples, and from these to the input of the statistics.

Beside the samples: what runs prove (``evidence``), and what differs between them (``environment``, ``explain``).
"""
