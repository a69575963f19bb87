"""Generic resources of Slurm's nodes, held against the grammar of slurm.conf(5)."""

import pytest

from gpubench.schedulers.slurm import parse_gres, whole_gpus


@pytest.mark.parametrize(
    ("text", "entries", "gpus"),
    [
        ("(null)", [], 0),
        ("N/A", [], 0),
        ("gpu", [("gpu", "", 1)], 1),
        ("gpu:4", [("gpu", "", 4)], 4),
        ("gpu:0", [("gpu", "", 0)], 0),
        ("gpu:tesla", [("gpu", "tesla", 1)], 1),
        ("gpu:a100:4(S:0-3)", [("gpu", "a100", 4)], 4),
        ("gpu:a100:4(S:0,2),nic:2", [("gpu", "a100", 4), ("nic", "", 2)], 4),
        ("gpu:a100:2(IDX:0,3),fpga:0", [("gpu", "a100", 2), ("fpga", "", 0)], 2),
        ("gpu:h100:0(IDX:N/A)", [("gpu", "h100", 0)], 0),
        ("gpu:tesla:2,gpu:kepler:1", [("gpu", "tesla", 2), ("gpu", "kepler", 1)], 3),
        ("bandwidth:lustre:no_consume:4G", [("bandwidth", "lustre", 4 * 2**30)], 0),
        ("gpu:no_consume:2", [("gpu", "", 2)], 2),
        ("shard:a100:16,mps:100", [("shard", "a100", 16), ("mps", "", 100)], 0),
        ("craynetwork:4,gpu:2", [("craynetwork", "", 4), ("gpu", "", 2)], 2),
        ("gpu:a100_3g.20gb:8(S:0-1)", [("gpu", "a100_3g.20gb", 8)], None),
        ("gpu:nvidia_h100_80gb_hbm3_1g.10gb:7", [("gpu", "nvidia_h100_80gb_hbm3_1g.10gb", 7)], None),
        ("gpu:a100:2,gpu:1g.5gb:14", [("gpu", "a100", 2), ("gpu", "1g.5gb", 14)], None),
    ],
)
def test_every_form_of_an_entry_is_read(text: str, entries: list[tuple[str, str, int]], gpus: int | None) -> None:
    assert parse_gres(text) == entries
    assert whole_gpus(text) == gpus
