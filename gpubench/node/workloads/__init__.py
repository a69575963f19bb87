"""The measured operations: one file per family, and the catalogue that describes them."""
