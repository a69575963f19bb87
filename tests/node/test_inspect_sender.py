"""A question to a process that has no gpubench, another one, or an older one."""

import asyncio
import sys
from types import ModuleType

import pytest

from gpubench import resources
from gpubench.node import inspect_sender
from gpubench.render.node_half import pack


class Worker:
    """What of a worker is asked."""

    address = "tcp://127.0.0.1:1"


def test_the_carried_code_answers_and_the_process_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = ModuleType("gpubench")
    for name in [name for name in sys.modules if name.partition(".")[0] == "gpubench"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gpubench", own)
    path = list(sys.path)
    answer = asyncio.run(inspect_sender.ask(pack(resources.node_half()), "of_worker", 0.0, dask_worker=Worker()))
    assert (answer["role"], answer["address"], answer["ucx"]) == ("worker", Worker.address, "none")
    assert {name: module for name, module in sys.modules.items() if name.startswith("gpubench")} == {"gpubench": own}
    assert sys.path == path
