"""The steps that commands are made of: each reads what the one before it wrote."""
