"""From the plan to files: scripts, run specs and the node half. Pure: values in, path → bytes out.

``templates`` are texts by path below ``templates/``, ``sources`` the files below ``docker/`` (locks, ``context/``), and
``gpubench`` is the tool's version.
"""
