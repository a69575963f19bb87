"""What runs on the nodes, inside the image: rank to role, rendezvous, supervision, checks, provenance.

It is packed into ``node.pyz``. Python 3.9, the standard library, and what the image already has.
"""
