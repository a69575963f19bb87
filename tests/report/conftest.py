import dataclasses
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))

import reports

import tests.drawn_once  # noqa: F401
from gpubench.results.judged_campaign import JudgedCampaign


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> JudgedCampaign:
    return dataclasses.replace(reports.collect(reports.story(tmp_path_factory.mktemp("c") / "story")), target="out/c")


@pytest.fixture(scope="session")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> JudgedCampaign:
    return dataclasses.replace(reports.collect(reports.troubled(tmp_path_factory.mktemp("c") / "c")), target="out/a b")
