"""Run the examples and keep what they show: pictures and printed lines, into docs/gallery.

python docs/gallery.py            # all of them
python docs/gallery.py pipeline   # some
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
GALLERY = ROOT / "docs" / "gallery"
N_COLOURS = 128  # a third of the bytes, and nothing to be seen of it


def run(script: Path, folder: str | Path) -> str:
    """What an example prints; its picture is then in the folder. One thread, no window."""
    environment = os.environ | {"MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, script], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{script.name} failed:\n{done.stderr}")
    return done.stdout


def smaller(picture: Path) -> bytes:
    """The same picture in few colours."""
    few = Image.open(picture).convert("RGB").quantize(N_COLOURS, dither=Image.Dither.NONE)
    small = io.BytesIO()
    few.save(small, format="png", optimize=True)
    return small.getvalue()


def keep(script: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        printed = run(script, folder)
        (GALLERY / f"{script.stem}.txt").write_text(printed, "utf-8")
        for picture in Path(folder).glob("*.png"):
            (GALLERY / picture.name).write_bytes(smaller(picture))
    print(f"{script.stem}\n{printed}")


def main() -> None:
    wanted = sys.argv[1:] or sorted(script.stem for script in EXAMPLES.glob("*.py"))
    for name in wanted:
        keep(EXAMPLES / f"{name}.py")
    print(sum(file.stat().st_size for file in GALLERY.glob("*.png")), "bytes of pictures")


if __name__ == "__main__":
    main()
