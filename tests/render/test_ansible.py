"""The playbook of a site, without Ansible; under a real one it runs in tests/cli/test_prereqs.py."""

import pytest
import yaml

from gpubench import resources
from gpubench.images.recipes import recipes
from gpubench.render.ansible import ENVIRONMENT, PLAYBOOK, render_prereqs
from gpubench.resources.profiles import load_site


def rendered(site: str, *settings: str, shared: str = "/shared/gpubench") -> dict[str, str]:
    profile = load_site(site, list(settings))
    (recipe,) = recipes(["none"], profile)
    files = render_prereqs(profile, recipe, shared, resources.texts("templates", "**/*.j2"), resources.docker_sources())
    return {name: data.decode() for name, data in files.items()}


@pytest.mark.parametrize(
    "shared", ["/a b/c: d", '/it\'s/"quoted"', "/{{ lookup('pipe', 'id') }}/{% x %}", "/back\\slash#1", "/ü/ 漢"]
)
def test_a_path_stands_in_the_playbook_as_one_scalar(shared: str) -> None:

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))
    text = rendered("deepops", shared=shared)[PLAYBOOK]
    plays = yaml.load(text, Loader)
    assert plays[1]["vars"]["gpubench_shared"] == shared
    assert ("!unsafe" in text) == ("{{" in shared)


def test_what_a_fabric_is_compiled_with_is_installed_under_both_families_names() -> None:
    text = rendered("deepops", 'image.fabric=["rdmacm", "verbs"]')[PLAYBOOK]
    debian, redhat = text.partition("RedHat:")[::2]
    assert {"- libibverbs-dev", "- librdmacm-dev"} <= {line.strip() for line in debian.splitlines()}
    assert "- rdma-core-devel" in {line.strip() for line in redhat.splitlines()}


def test_cuda_is_installed_in_one_version_and_only_where_the_profile_has_it() -> None:
    assert 'name: "cuda-toolkit-11-8' in rendered("deepops")[PLAYBOOK]
    without = rendered("deepops", "image.cuda=", "image.compute_capability=")
    assert "cuda-toolkit" not in without[PLAYBOOK]
    assert "cudatoolkit" not in without[ENVIRONMENT]
