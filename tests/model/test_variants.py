import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.errors import UsageError
from gpubench.model.variant import ImageSpec, Variant, parse_variant, parse_variants, with_packages

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
specs = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,10}", fullmatch=True)
# A value may hold commas and equals signs, as long as no comma starts what looks like the next setting.
values = st.from_regex(r"[A-Za-z0-9:/^,.=_-]{0,12}", fullmatch=True).filter(
    lambda text: not text.startswith("=") and not any("=" in part for part in text.split(",")[1:])
)
settings = st.dictionaries(names, values, max_size=3)


@pytest.mark.parametrize(
    ("text", "label", "ucx", "env"),
    [
        ("1.19.0", "1.19.0", "1.19.0", {}),
        ("v1.14.x", "v1.14.x", "v1.14.x", {}),
        ("old=1.17.0", "old", "1.17.0", {}),
        ("1.19.0,UCX_PROTO_ENABLE=n", "1.19.0,UCX_PROTO_ENABLE=n", "1.19.0", {"UCX_PROTO_ENABLE": "n"}),
        ("p1=1.19.0,UCX_PROTO_ENABLE=n", "p1", "1.19.0", {"UCX_PROTO_ENABLE": "n"}),
        ("a=1.22.0,UCX_TLS=tcp,sm", "a", "1.22.0", {"UCX_TLS": "tcp,sm"}),
        ("a=1.22.0,UCX_TLS=tcp,sm,UCX_NET_DEVICES=lo", "a", "1.22.0", {"UCX_TLS": "tcp,sm", "UCX_NET_DEVICES": "lo"}),
        ("a=1.22.0,X=", "a", "1.22.0", {"X": ""}),
        ("a=1.22.0,X=b=c", "a", "1.22.0", {"X": "b=c"}),
        ("a=1.22.0,X=b==c", "a", "1.22.0", {"X": "b==c"}),
        ("a=1.22.0,dask==2025.5.1", "a", "1.22.0,dask==2025.5.1", {}),
        ("a=1.22.0,stack=dask==2025.5.1", "a", "1.22.0,dask==2025.5.1", {}),
        (
            "a=1.22.0,X=1,Dask_cuda==25.6.0,Y=2,pandas==2.2",
            "a",
            "1.22.0,dask-cuda==25.6.0,pandas==2.2",
            {"X": "1", "Y": "2"},
        ),
        ("a=1.22.0,ucxx=0.52.0,X=1", "a", "1.22.0,stack=ucxx-0.52.0", {"X": "1"}),
        ("a=1.22.0,ucxx==0.52.0", "a", "1.22.0,ucxx==0.52.0", {}),
        ("a=1.22.0,pandas==2.2,stack=ucxx-0.52.0", "a", "1.22.0,stack=ucxx-0.52.0,pandas==2.2", {}),
    ],
)
def test_a_comma_parts_only_where_a_key_follows(text: str, label: str, ucx: str, env: dict[str, str]) -> None:
    assert parse_variant(text) == Variant(label=label, ucx=ucx, env=env)


@given(names, specs, settings)
def test_a_variant_that_is_written_out_reads_back_the_same(label: str, spec: str, env: dict[str, str]) -> None:
    tail = "".join(f",{key}={value}" for key, value in env.items())
    assert parse_variant(f"{label}={spec}{tail}") == Variant(label=label, ucx=spec, env=env)
    bare = f"{spec}{tail}"
    assert parse_variant(bare) == Variant(label=bare, ucx=spec, env=env)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=1.19.0", "lacks a label or a version"),
        ("a=", "lacks a label or a version"),
        ("", "lacks a label or a version"),
        (",UCX_TLS=tcp", "lacks a label or a version"),
        ("a=1.19.0,X=1,X=2", "sets X twice"),
        ("1.19.0,", "'1.19.0,' is no version"),
        ("a=1.19.0,tcp", "'1.19.0,tcp' is no version"),
        ("1.19.0,ucx-tls=tcp", "'ucx-tls' is no name of a variable"),
        ("1.19.0,9X=tcp", "'9X' is no name of a variable"),
        ("a=1.19.0,dask==", "'dask==' is no exact version of a package"),
        ("a=1.19.0,dask==latest", "'dask==latest' is no exact version of a package"),
        ("a=1.19.0,dask==2025.5.1,dask==2025.7.0", "names dask twice"),
    ],
)
def test_what_is_no_variant_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace(".", r"\.")) as caught:
        parse_variant(text)
    assert f"variant '{text}'" in str(caught.value)


@given(
    st.dictionaries(st.from_regex(r"[a-z][a-z0-9]{0,5}(-[a-z0-9]+)?", fullmatch=True), st.just("1.2"), max_size=3),
    names,
)
def test_an_image_s_spec_is_what_is_read_from_it(packages: dict[str, str], stack: str) -> None:
    spec = ImageSpec("1.22.0", stack, packages)
    assert ImageSpec.parse(str(spec)) == spec


def test_the_first_variant_is_the_baseline_and_the_order_is_kept() -> None:
    assert [variant.label for variant in parse_variants(["b=1.22.0", "a=1.16.0"])] == ["b", "a"]


def test_the_same_version_twice_needs_labels() -> None:
    with pytest.raises(UsageError, match=r"variant '1\.22\.0' is given twice; .*--variants \"a=1\.22\.0 b=1\.22\.0\""):
        parse_variants(["1.22.0", "1.22.0"])
    assert len(parse_variants(["a=1.22.0", "b=1.22.0"])) == 2


@pytest.mark.parametrize("words", [[], ["1.22.0"]])
def test_fewer_than_two_variants_are_no_comparison(words: list[str]) -> None:
    with pytest.raises(UsageError, match="needs two variants at least"):
        parse_variants(words)


def test_packages_of_all_variants_leave_labels_and_a_variant_s_own_choice() -> None:
    variants = parse_variants(["1.17.0", "b=1.19.0,stack=ucxx-0.45.1,UCX_TLS=tcp", "c=1.19.0,dask==2025.7.0"])
    assert with_packages(variants, ["dask==2025.5.1", "Dask_cuda==25.6.0"]) == [
        Variant(label="1.17.0", ucx="1.17.0,dask==2025.5.1,dask-cuda==25.6.0"),
        Variant(label="b", ucx="1.19.0,stack=ucxx-0.45.1,dask==2025.5.1,dask-cuda==25.6.0", env={"UCX_TLS": "tcp"}),
        Variant(label="c", ucx="1.19.0,dask==2025.7.0,dask-cuda==25.6.0"),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dask"], "--with: 'dask' is no exact version of a package; write PACKAGE==1.2.3"),
        (["dask==2025.5.1,pandas==2.2"], "--with: 'dask==2025.5.1,pandas==2.2' is no exact version"),
        (["dask==2025.5.1", "DASK==2025.7.0"], "--with names dask twice"),
    ],
)
def test_what_is_no_package_s_version_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_packages(parse_variants(["1.17.0", "1.19.0"]), words)
    assert str(caught.value).startswith(message)
