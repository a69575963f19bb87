"""Of cupyx.scipy only what gpubench imports."""
