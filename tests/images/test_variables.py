"""Variables that nothing reads are refused before they cost time; the table knows what the real libraries list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import dask.config
import distributed
import pytest

from gpubench.cli.sites.profiles import load_site, site_names
from gpubench.errors import UsageError
from gpubench.images.variables import check_variables, why_unknown
from gpubench.model.image import parse_variant


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
    check_variables(load_site("local"), [parse_variant(f"a=1.19.0,{name}=1")])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("UCX_TSL", "no known UCX reads UCX_TSL (did you mean 'UCX_TLS'?)"),
        ("UCX_TLSX", "no known UCX reads UCX_TLSX (did you mean 'UCX_TLS'?)"),
        ("UCX_", "no known UCX reads UCX_"),
        (
            "UCXPY_PROGRES_MODE",
            "no known binding of UCX reads UCXPY_PROGRES_MODE (did you mean 'UCXPY_PROGRESS_MODE'?)",
        ),
        (
            "DASK_TEMPORARY_DIR",
            "no known Dask reads DASK_TEMPORARY_DIR (did you mean 'DASK_TEMPORARY_DIRECTORY'?)",
        ),
        ("DASK_VERSION", "no known Dask reads DASK_VERSION"),
    ],
)
def test_what_nothing_reads_is_refused_with_a_near_name(name: str, why: str) -> None:
    assert why_unknown(name).startswith(why)
    with pytest.raises(UsageError, match=re.escape(f"variant 'a': {why}")):
        check_variables(load_site("local"), [parse_variant(f"a=1.19.0,{name}=1")])
    with pytest.raises(UsageError, match=re.escape(f"env of site local: {why}")):
        check_variables(load_site("local", [f'env.{name}="1"']), [])


def test_a_package_is_no_variable() -> None:
    with pytest.raises(
        UsageError,
        match=r"variant 'dask1' sets dask, and names of environment variables are upper-case; for a version of a "
        r"package write dask==2024\.1; else",
    ):
        check_variables(load_site("local"), [parse_variant("dask1=1.19.0,dask=2024.1")])


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
