from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpubench.model.own_workload import OwnWorkload
from gpubench.node.workloads.base import WorkloadContext
from tests.workloads import own_files

CONTRIB = Path(__file__).parents[3] / "contrib"
Family = Callable[[str], OwnWorkload]


@pytest.fixture(scope="module")
def family(
    request: pytest.FixtureRequest, cluster: WorkloadContext, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Family]:
    """The workload by its class's name, of the test module's ``FILE``; ``ANY`` is the name of a class in it.

    The file lies where a campaign would have put it.
    """
    file = CONTRIB / request.module.FILE

    def parsed(name: str) -> OwnWorkload:
        return own_files.parsed(f"{file.name}:{name}", file.parent)

    with own_files.packed(cluster, tmp_path_factory.mktemp("contrib"), parsed(request.module.ANY)):
        yield parsed
