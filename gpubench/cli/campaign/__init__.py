"""Commands that plan and run campaigns, from ``plan`` and ``bench`` to ``cancel``."""
