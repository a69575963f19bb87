"""The group ``gpubench images``: build, push, import, list, lock."""
