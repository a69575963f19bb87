"""Software that a site has as modules: the lines that load it."""

from __future__ import annotations

from collections.abc import Mapping

from gpubench.model.site import ImageSettings
from gpubench.render.environment import environment

SCRIPT = "load.sh"


def render_modules(site: str, settings: ImageSettings, spec: str, templates: Mapping[str, str]) -> str:
    """Shell that loads the profile's modules for a UCX spec and puts its prefix in front.

    Raises:
        ValueError: a control character in one of the names.
    """
    modules = [name.replace("{ucx}", spec) for name in settings.modules]
    prefix = settings.prefix.replace("{ucx}", spec)
    template = "modules/load.sh.j2"
    return environment(templates).get_template(template).render(site=site, modules=modules, prefix=prefix)
