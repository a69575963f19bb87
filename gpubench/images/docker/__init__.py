"""Container images: built, pushed and pulled through a Docker engine, looked up in a registry without one."""
