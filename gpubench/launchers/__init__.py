"""How one supervisor per node is started: a template each, named in the one dict."""

LAUNCHERS = {
    "fork": "launchers/fork.sh.j2",
}
