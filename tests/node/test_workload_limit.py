"""A workload that takes too long is ended. In processes of their own: the limit is an alarm of the whole process."""

import pytest

from tests.node.runners import printed

HEAD = """
import time
from gpubench.node.workload_limits import Limit, WorkloadTimeoutError
"""


def test_what_takes_too_long_is_ended_and_says_its_limit() -> None:
    code = """
try:
    with Limit(0.05):
        time.sleep(600)
except WorkloadTimeoutError as error:
    print(error)
"""
    assert printed(HEAD + code) == "no answer within 0.05 s\n"


def test_what_is_swallowed_while_an_object_is_deleted_comes_again() -> None:
    code = """
class Slow:
    def __del__(self):
        end = time.monotonic() + 0.9
        while time.monotonic() < end:
            pass
try:
    with Limit(0.3):
        Slow()
        print("swallowed")
        time.sleep(600)
except WorkloadTimeoutError as error:
    print(error)
"""
    assert printed(HEAD + code) == "swallowed\nno answer within 0.3 s\n"


def test_time_of_others_does_not_count() -> None:
    code = """
with Limit(0.4) as limit:
    with limit.held():
        time.sleep(0.8)
    print("held")
    try:
        time.sleep(600)
    except WorkloadTimeoutError as error:
        print(error)
"""
    assert printed(HEAD + code) == "held\nno answer within 0.4 s\n"


@pytest.mark.parametrize("ending", ["pass", "raise ValueError"])
def test_a_limit_ends_with_its_block(ending: str) -> None:
    code = f"""
import signal
try:
    with Limit(0.5):
        {ending}
except ValueError:
    pass
assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
time.sleep(0.7)
print("goes on")
"""
    assert printed(HEAD + code) == "goes on\n"


def test_another_thread_ends_the_block_with_its_own_reason() -> None:
    code = """
import threading
try:
    with Limit(600) as limit:
        threading.Timer(0.05, limit.end, [ValueError("enough")]).start()
        time.sleep(600)
except ValueError as error:
    print(error)
"""
    assert printed(HEAD + code) == "enough\n"


@pytest.mark.parametrize("silent", ["_ready", "_at_end"])
def test_a_client_whose_cluster_does_not_answer_writes_what_it_has(silent: str) -> None:
    """``Client.run`` waits for ever for a worker whose event loop hangs, for example in a GPU that synchronises."""
    code = f"""
import argparse, distributed, json, os, pathlib, tempfile
from gpubench.node import client
from gpubench.node.spec import Deadlines
from tests.node.specs_by_hand import run_spec
distributed.Client = client._ready = client._measure_all = client._at_end = lambda *words, **options: None
client.{silent} = lambda *words, **options: time.sleep(600)
client.ANSWER_S = 0.2
client.os._exit = lambda code: None
os.chdir(tempfile.mkdtemp())
options = argparse.Namespace(address="tcp://127.0.0.1:1", run_dir=".", turns=None)
client.run_client(options, run_spec(deadlines=Deadlines(start_s=0.0)))
result = json.loads(pathlib.Path("client-result.json").read_text())
print(result["error"], [one["status"] for one in result["workloads"]])
"""
    assert printed(HEAD + code) == "a process of the cluster doesn't answer: no answer within 0.2 s ['failed']\n"
