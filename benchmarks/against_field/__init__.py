"""``link`` and ``pdsh`` beside the commands that they stand for, on the same data, in turns."""
