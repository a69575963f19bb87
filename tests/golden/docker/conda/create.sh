#!/usr/bin/env bash
# Stack ucx-py-0.35 with UCX v1.14.x as a conda prefix for site deepops. Rendered by gpubench.
# Run it again at any time: a finished prefix is left alone, an unfinished one is made anew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
prefix='/shared/o'"'"'neill & co/conda/ucx-py-0.35-KEY'
step() { echo "== $*"; }
missing() { # WHAT
  echo "gpubench: $*" >&2
  exit 5
}
mkdir -p "$(dirname "$prefix")"
# A conda prefix can't be renamed (its programs name it by path), so a marker says that it is finished.
exec 9>"$prefix.lock"
if ! flock -n 9; then
  step "waiting for another builder"
  flock 9
fi
if [ -e "$prefix/gpubench-finished" ]; then
  echo "$prefix is there"
  exit 0
fi
[ "$(uname -m)" = x86_64 ] || missing "the prefix is for x86_64, $(hostname) is $(uname -m)"
conda=$(command -v "${CONDA_EXE:-conda}" || command -v mamba) || missing "neither conda nor mamba is on the PATH of $(hostname)"
rm -rf "$prefix"
# What a user has installed for other programs: -I doesn't reach the processes in which pip builds.
unset PYTHONPATH PYTHONHOME
export PYTHONNOUSERSITE=1
export CONDA_OVERRIDE_CUDA=11.8
step "conda env create"
"$conda" env create -q -p "$prefix" -f environment.yml
# Arrow 11 to 16 bring a UCX of conda's own (for Flight), which the binding's build would put first.
rm -rf "$prefix"/lib/libuc[mpst]*.so* "$prefix/lib/ucx"
step "UCX "v1.14.x
sources=$(mktemp -d)
trap 'rm -rf "$sources"' EXIT
(
  cd "$sources"
  git init -q
  git fetch -q --depth 1 file:///nowhere/ucx.git 0123456789abcdef0123456789abcdef01234567
  git checkout -q FETCH_HEAD
  test "$(git rev-parse HEAD)" = 0123456789abcdef0123456789abcdef01234567
  ./autogen.sh
  ./contrib/configure-release --prefix="$prefix/ucx" --enable-cma --enable-mt --enable-numa --with-gnu-ld --without-go --without-java --without-rdmacm --without-verbs --with-cuda=/usr/local/cuda LDFLAGS=-Wl,-rpath,/usr/local/cuda/lib64 --with-nvcc-gencode=-gencode=arch=compute_61,code=sm_61
  make -j"$(nproc)" CFLAGS=-Wno-error # UCX makes errors of warnings, and a newer compiler has more of them
  make install
)
step "ucx-py 0.35.00"
CPATH=$prefix/ucx/include LIBRARY_PATH=$prefix/ucx/lib LD_LIBRARY_PATH=$prefix/ucx/lib \
  "$prefix/bin/python" -I -m pip install --disable-pip-version-check --no-deps --no-build-isolation git+https://github.com/rapidsai/ucx-py.git@v0.35.00
step "manifest"
install -m 0644 -D -t "$prefix/gpubench" describe.py build.json
LD_LIBRARY_PATH=$prefix/ucx/lib "$prefix/bin/python" -I -B "$prefix/gpubench/describe.py" "$prefix/ucx" || exit 3
echo KEY >"$prefix/gpubench-finished"
