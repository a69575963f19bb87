"""What a command was asked for: a dataclass for each group of commands, whose fields declare its options."""
