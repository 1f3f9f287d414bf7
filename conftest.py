"""What pytest does not collect: programs, and modules that need torch or Triton. And how Dask starts."""

import gc
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
_NEEDS_A_DEVICE = re.compile(r"^(import|from) (torch|triton)\b", re.MULTILINE)

collect_ignore = ["tests/fuzz", "tests/device/triton_kernels.py"]
collect_ignore += [path for path in (ROOT / "src").rglob("*.py") if _NEEDS_A_DEVICE.search(path.read_text("utf-8"))]


@pytest.fixture(scope="session", autouse=True)
def _workers_are_forked():
    """Dask's workers are copies of a process that has imported what they need: else each imports for two seconds.

    The command line and programs of their own start them as users do.
    """
    if (distributed := sys.modules.get("distributed")) is None:  # tests of clusters import it as they are collected
        yield
        return
    import dask

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        distributed.utils.get_mp_context().set_forkserver_preload(["distributed", "cghash.cluster.learning.actors"])
        yield


@pytest.fixture(scope="session", autouse=True)
def _loops_start_while_nothing_is_collected():
    """Of clients and clusters that tests start by themselves; `cghash.cluster.clients` says why."""
    if (distributed := sys.modules.get("distributed")) is None:
        yield
        return
    runner = distributed.utils.LoopRunner
    start = runner.start

    def start_alone(self):
        collects = gc.isenabled()
        gc.disable()
        try:
            start(self)
        finally:
            if collects:
                gc.enable()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "start", start_alone)
        yield
