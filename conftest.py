"""What pytest does not collect: programs, and modules that need torch or Triton to be imported."""

import re
from pathlib import Path

ROOT = Path(__file__).parent
_NEEDS_A_DEVICE = re.compile(r"^(import|from) (torch|triton)\b", re.MULTILINE)

collect_ignore = ["tests/fuzz", "tests/device/triton_kernels.py"]
collect_ignore += [path for path in (ROOT / "src").rglob("*.py") if _NEEDS_A_DEVICE.search(path.read_text("utf-8"))]
