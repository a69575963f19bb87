"""A password in a profile, a suite, a file of rules or a variant is refused, and nothing else is."""

import tomllib
from typing import Any

import pytest

from gpubench.errors import UsageError
from gpubench.model.known_issue import load_known_issues
from gpubench.model.plan import Plan
from gpubench.model.secrets import without_login
from gpubench.model.site import Site
from gpubench.model.variant import parse_variant
from tests.conftest import ROOT

PLANTED = "s3cr3t-planted"
LOCAL = (ROOT / "sites" / "local.toml").read_text()


def site(**more: Any) -> Site:
    return Site.of({**tomllib.loads(LOCAL), **more}, "mine.toml")


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"image": {"registry": f"me:{PLANTED}@registry.example/ucx"}}, "image.registry"),
        ({"image": {"registry": f"http://me:{PLANTED}@registry.example:5000/ucx"}}, "image.registry"),
        ({"image": {"registry": f"me:{PLANTED}/x@registry.example/ucx"}}, "image.registry"),
        ({"image": {"base": f"me:{PLANTED}@registry.example/debian:12"}}, "image.base"),
        ({"image": {"ucx_repository": f"https://{PLANTED}@github.com/openucx/ucx.git"}}, "image.ucx_repository"),
        ({"env": {"REGISTRY_PASSWORD": PLANTED}}, "env.REGISTRY_PASSWORD"),
        ({"env": {"NGC_API_KEY": PLANTED}}, "env.NGC_API_KEY"),
        ({"env": {"HTTPS_PROXY": f"http://me:{PLANTED}@proxy:3128"}}, "env.HTTPS_PROXY"),
        ({"container": {"options": ["-e", f"GITHUB_TOKEN={PLANTED}"]}}, "container.options.1"),
        ({"container": {"options": [f"--env=GITHUB_TOKEN={PLANTED}"]}}, "container.options.0"),
        ({"defaults": {"variants": ["1.16.0", f"b=1.22.0,MY_SECRET={PLANTED}"]}}, "defaults.variants.1"),
        ({"image": {"registry": f"me:{PLANTED}@r/x", "no_such_key": 1}}, "image.registry"),
    ],
)
def test_a_password_is_refused_without_being_repeated(more: dict[str, Any], where: str) -> None:
    with pytest.raises(UsageError) as caught:
        site(**more)
    assert f"mine.toml: '{where}' holds a password" in str(caught.value)
    assert "docker login" in str(caught.value)
    assert ".credentials" in str(caught.value)
    assert PLANTED not in str(caught.value)


@pytest.mark.parametrize(
    "more",
    [
        {
            "image": {
                "registry": "registry.example:5000/ucx",
                "base": "registry.example:5000/debian:12@sha256:" + "0" * 64,
            }
        },
        {"image": {"base": "debian:12@sha256:" + "0" * 64}},
        {"image": {"ucx_repository": "ssh://git@github.com/openucx/ucx.git"}},
        {"image": {"ucx_repository": "git@github.com:openucx/ucx.git"}},
        {"env": {"UCX_IB_PKEY": "0x8001", "DASK_DISTRIBUTED__COMM__TLS__WORKER__KEY": "/keys/worker.pem"}},
        {"env": {"MAX_TOKEN": "512", "GITHUB_TOKEN_FILE": "/run/token", "EMPTY_PASSWORD": "", "PWD": "/tmp"}},
        {"kubernetes": {"tolerations": [{"key": "dedicated", "value": "gpu"}]}},
        {"kubernetes": {"image_pull_secrets": ["my-registry-secret"]}},
        {"defaults": {"variants": ["git:master@" + "0" * 40, "b=1.22.0,UCX_TLS=tcp,sm"]}},
        {"container": {"options": ["--label=key=value", "--mount=type=bind,src=/a,dst=/b"]}},
    ],
)
def test_what_is_no_password_is_taken(more: dict[str, Any]) -> None:
    site(**more)


def test_a_variant_with_a_password_is_refused_without_being_repeated() -> None:
    for setting in (f"WANDB_API_KEY={PLANTED}", f"HTTPS_PROXY=http://me:{PLANTED}@proxy"):
        with pytest.raises(UsageError, match="holds a password") as caught:
            parse_variant(f"a=1.22.0,{setting}")
        assert PLANTED not in str(caught.value)


def test_so_is_a_rule_that_sets_one() -> None:
    rule = '[[issue]]\nname = "x"\naction = "env"\nreason = "r"\nurl = "https://x/y"\nwhen = { nodes_above = 1 }\n'
    with pytest.raises(UsageError, match=r"issue\.0\.env\.A_TOKEN' holds a password") as caught:
        load_known_issues(rule + f'env = {{ A_TOKEN = "{PLANTED}" }}\n', "known.toml")
    assert PLANTED not in str(caught.value)


def test_a_plan_of_long_ago_stays_readable() -> None:
    plan = (ROOT / "tests" / "golden" / "schemas" / "1" / "campaign" / "plan.json").read_text()
    old = plan.replace('"registry": ""', '"registry": "me:secret@registry.example/ucx"')
    assert Plan.parse(old, "plan.json").site.image.registry.startswith("me:")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:s3cr3t@host/db", "postgresql://***@host/db"),
        ("https://token@host:80/a, then http://me:wo@rd@host", "https://***@host:80/a, then http://***@host"),
        ("mssql+pyodbc://host/db?driver=x&Password=wo%20rd&y=1", "mssql+pyodbc://host/db?driver=x&Password=***&y=1"),
        ("sqlite:////home/me@site/runs.db", "sqlite:////home/me@site/runs.db"),
    ],
)
def test_an_address_is_shown_without_its_login(text: str, shown: str) -> None:
    assert without_login(text) == shown
