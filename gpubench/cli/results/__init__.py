"""Commands that read results: compare, report, explain, history, import, export, pack, fsck."""
