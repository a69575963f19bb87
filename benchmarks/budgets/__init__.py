"""What has a budget in seconds: starts, plans, looks at ten thousand runs, the search for changes, nodes given back."""
