"""Commands that plan and run campaigns, from ``plan`` and ``bench`` to ``fetch`` and ``calibrate``."""
