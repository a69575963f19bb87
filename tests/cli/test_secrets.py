"""What a user's shell holds for other programs stands nowhere in a campaign."""

from pathlib import Path

import pytest

from tests.cli.campaigns import campaign_in, files_with, records, words, write_suite
from tests.conftest import Run

pytestmark = pytest.mark.integration
PLANTED = "planted-s3cr3t"
SHELL = {
    "AWS_SECRET_ACCESS_KEY": PLANTED,
    "REGISTRY_PASSWORD": PLANTED,
    "HTTPS_PROXY": f"http://me:{PLANTED}@127.0.0.1:9",
    "PIP_INDEX_URL": f"https://me:{PLANTED}@127.0.0.1:9/simple",
    "UCX_PLANTED": PLANTED,  # dropped, and said
    "DASK_PLANTED__TOKEN": PLANTED,
    "SBATCH_COMMENT": PLANTED,
    "GPUBENCH_PLANTED": PLANTED,
}


def test_a_planted_secret_stands_in_no_file_of_a_campaign_and_in_no_message(gpubench: Run, tmp_path: Path) -> None:
    suite = write_suite(tmp_path, reps=1, count=10)
    failing = ("--set", "limits.start=1ms")  # everything that is known of a failed run goes into its record and logs
    for more, status in (((), "ok"), (failing, "failed")):
        home = tmp_path / status
        done = gpubench(
            *words(suite, "--blocks", "1", "--outputs", str(home / "outputs"), *more),
            env={**SHELL, "LANG": "C.UTF-8"},
        )
        found = records(campaign_in(home))
        assert {run["status"] for run in found.values()} == {status}, done.stdout + done.stderr
        assert any("UCX_PLANTED" in warning for run in found.values() for warning in run["warnings"])
        assert PLANTED not in done.stdout + done.stderr
        assert files_with("C.UTF-8", home) != []
        assert files_with(PLANTED, tmp_path) == []


@pytest.mark.parametrize(
    "more",
    [
        ["--set", f"image.registry=me:{PLANTED}@registry.example/ucx"],
        ["--base", f"me:{PLANTED}@registry.example/debian:12"],
        ["--set", f"env.REGISTRY_PASSWORD={PLANTED}"],
        ["--variants", f"a=1.22.0 b=1.22.0,NGC_API_KEY={PLANTED}"],
    ],
)
def test_a_password_in_a_profile_or_a_variant_is_refused_and_nothing_is_written(
    gpubench: Run, tmp_path: Path, more: list[str]
) -> None:
    done = gpubench("plan", "--variants", "a=1.22.0 b=1.22.0", *more)
    assert done.returncode == 2
    assert "holds a password" in done.stderr
    assert "docker login" in done.stderr
    assert PLANTED not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []
