"""What building an image costs beside installing its packages."""
