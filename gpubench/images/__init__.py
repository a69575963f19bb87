"""Images: built software environments that hold one UCX version each."""
