"""Software that a site has as modules: the lines that load it, and the identity of what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpubench.render.environment import environment
from gpubench.spec.plain import content_id


def render_modules(site: str, modules: Sequence[str], prefix: str, templates: Mapping[str, str]) -> tuple[str, str]:
    """Shell that loads ``modules`` in this order and puts ``prefix`` (UCX and Python) in front, and its content id."""
    text = (
        environment(templates)
        .get_template("modules/load.sh.j2")
        .render(site=site, modules=list(modules), prefix=prefix)
    )
    return text, content_id({"modules": list(modules), "prefix": prefix})
