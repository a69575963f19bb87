"""Site profiles: list and check them, write a new one, look at a site's nodes and prepare them."""
