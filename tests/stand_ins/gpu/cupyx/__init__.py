"""Of cupyx only what gpubench imports."""
