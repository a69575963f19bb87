"""Variables that nothing reads are refused before they cost time; the table knows what the real libraries list."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest

from gpubench.errors import UsageError
from gpubench.images.variables import check_listed, check_variables, why_unknown
from gpubench.model.image import Image
from gpubench.model.variant import parse_variant
from gpubench.resources.profiles import load_site, site_names


@pytest.mark.parametrize(
    "name",
    [
        "UCX_TLS",
        "UCX_RC_MLX5_TX_CQ_LEN",
        "UCXPY_PROGRESS_MODE",
        "DASK_DISTRIBUTED__COMM__ZSTD__LEVEL",
        "DASK_DISTRIBUTED__COMM",
        "DASK_LOGGING__DISTRIBUTED",
        "DASK_DISTRIBUTED__NANNY__ENVIRON__MALLOC_TRIM_THRESHOLD_",
        "OMP_NUM_THREADS",
        "MALLOC_ARENA_MAX",
        "GPUBENCH_SLOW",
    ],
)
def test_what_something_may_read_passes(name: str) -> None:
    assert why_unknown(name) == ""
    check_variables(load_site("local"), [parse_variant(f"a=1.19.0,{name}=1%")])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("UCX_TSL", "no known UCX reads UCX_TSL (did you mean 'UCX_TLS'?)"),
        ("UCX_TLSX", "no known UCX reads UCX_TLSX (did you mean 'UCX_TLS'?)"),
        ("UCX_", "no known UCX reads UCX_"),
        ("UCXPY_PROGRES_MODE", "no known binding of UCX reads UCXPY_PROGRES_MODE (did you mean 'UCXPY_PROGRESS_MOD"),
        ("DASK_TEMPORARY_DIR", "no known Dask reads DASK_TEMPORARY_DIR (did you mean 'DASK_TEMPORARY_DIRECTORY'?)"),
        ("DASK_VERSION", "no known Dask reads DASK_VERSION"),
    ],
)
def test_what_nothing_reads_is_refused_with_a_near_name(name: str, why: str) -> None:
    assert why_unknown(name).startswith(why)
    with pytest.raises(UsageError, match=re.escape(f"variant 'a': {why}")):
        check_variables(load_site("local"), [parse_variant(f"a=1.19.0,{name}=1%")])
    with pytest.raises(UsageError, match=re.escape(f"env of site local: {why}")):
        check_variables(load_site("local", [f'env.{name}="1"']), [])


def test_a_package_is_no_variable() -> None:
    with pytest.raises(
        UsageError,
        match=r"variant 'dask1' sets dask, and names of environment variables are upper-case; for a version of a "
        r"package write dask==2024\.1; else",
    ):
        check_variables(load_site("local"), [parse_variant("dask1=1.19.0,dask=2024.1")])


LISTS = """#!/bin/sh
[ "$*" = -ca ] || exit 1
cat <<'END'
UCX_TLS=all
UCX_PROTO_ENABLE=y
# UCX_COMMENT=1
END
"""


def ucx_of(folder: Path, script: str) -> Image:
    """An image whose ``ucx_info`` is this script."""
    (folder / "bin").mkdir()
    (folder / "bin" / "ucx_info").write_text(script)
    (folder / "bin" / "ucx_info").chmod(0o755)
    env = {"LD_LIBRARY_PATH": f"{folder}/lib"}
    about = {"ucx_spec": "1.17.0", "ucx_version": "1.17.0", "binding": "ucxx", "python": "python", "manifest": "0" * 12}
    return Image(kind="venv", id="0" * 16, env=env, **about)


@pytest.mark.parametrize("name", ["UCX_TLS", "UCX_PROTO_ENABLE", "UCX_RC_MLX5_TX_CQ_LEN", "OMP_NUM_THREADS"])
def test_what_the_images_own_ucx_lists_and_what_a_module_may_read_passes(name: str, tmp_path: Path) -> None:
    image = ucx_of(tmp_path, LISTS)
    check_listed([parse_variant(f"a=1.17.0,{name}=1")], {"1.17.0": image})


def test_what_only_other_releases_of_ucx_read_is_refused(tmp_path: Path) -> None:
    variant, image = parse_variant("a=1.17.0,UCX_PROTO_EMULATION_ENABLE=y"), ucx_of(tmp_path, LISTS)
    check_variables(load_site("local"), [variant])
    why = "UCX 1.17.0 of variant 'a' reads no UCX_PROTO_EMULATION_ENABLE"
    with pytest.raises(UsageError, match=re.escape(f"{why}; correct it, or pass --allow-unknown-env")):
        check_listed([variant], {"1.17.0": image})
    near = parse_variant("a=1.17.0,UCX_PROTO_INFO=y")
    (tmp_path / "bin" / "ucx_info").write_text(LISTS.replace("UCX_PROTO_ENABLE", "UCX_PROTO_INFO_DIR"))
    with pytest.raises(UsageError, match=re.escape("reads no UCX_PROTO_INFO (did you mean 'UCX_PROTO_INFO_DIR'?)")):
        check_listed([near], {"1.17.0": image})


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 1\n", "no program"])
def test_a_ucx_that_cannot_be_asked_here_refuses_nothing(script: str, tmp_path: Path) -> None:
    variant = parse_variant("a=1.17.0,UCX_PROTO_EMULATION_ENABLE=y")
    check_listed([variant], {"1.17.0": ucx_of(tmp_path, script)})
    check_listed([variant], {"1.17.0": None})


@pytest.mark.parametrize("name", site_names())
def test_the_profiles_that_come_along_set_what_something_reads(name: str) -> None:
    check_variables(load_site(name), [])


def test_the_table_knows_the_configuration_of_the_dask_that_is_installed() -> None:
    assert distributed.__version__  # its import adds its part of the configuration
    keys = [key for table in dask.config.defaults for key in _keys(table)]
    assert len(keys) > 100
    names = [f"DASK_{key.upper().replace('.', '__').replace('-', '_')}" for key in keys]
    assert [name for name in names if why_unknown(name)] == []


def _keys(table: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _keys(value, f"{above}{key}.")
        else:
            yield f"{above}{key}"
