"""The group ``gpubench images``: build, push, import, list, show, verify, lock."""
