"""Software that a site has as modules: the lines that load it, and the identity of what they say."""

from __future__ import annotations

from collections.abc import Mapping

from gpubench.model.site import ImageSettings
from gpubench.render.environment import environment
from gpubench.spec.plain import content_id

SCRIPT = "load.sh"


def render_modules(site: str, settings: ImageSettings, spec: str, templates: Mapping[str, str]) -> tuple[str, str]:
    """Shell that loads the profile's modules for a UCX spec and puts its prefix in front, and its content id.

    Raises:
        ValueError: a control character in one of the names.
    """
    modules = [name.replace("{ucx}", spec) for name in settings.modules]
    prefix = settings.prefix.replace("{ucx}", spec)
    template = "modules/load.sh.j2"
    text = environment(templates).get_template(template).render(site=site, modules=modules, prefix=prefix)
    return text, content_id({"script": text})
