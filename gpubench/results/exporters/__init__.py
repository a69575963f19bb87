"""Results of ours as other tools write or keep them. Always from the store, never from the nodes."""
