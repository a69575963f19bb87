#!/usr/bin/env bash
# install.sh VENV tool|dev: create VENV if it is missing and bring it to the hashed lock of that name.
# uv does the work: the one on PATH, else one that pip puts into VENV (pip can't do it in the time that one waits).
set -euo pipefail
venv=$1 lock=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
  printf 'make install: %s\n' "$1" >&2
  exit "${2:-5}"
}

find_python() {
  local name
  for name in "${PYTHON:-python3}" python3.13 python3.12 python3.11 /usr/bin/python3; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      printf '%s' "$name"
      return
    fi
  done
  fail "no Python 3.11 or newer found; install one, or name it: make install PYTHON=/path/to/python3.11"
}

printf 'installing into %s what requirements/%s.txt names; once, a minute or so\n' "$venv" "$lock" >&2
if [ ! -x "$venv/bin/python" ]; then
  python=$(find_python)
  if command -v uv >/dev/null; then
    uv venv -q --python "$python" "$venv"
  else
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
      fail "this Python can't make virtual environments; install its venv package (Debian and Ubuntu: apt install python3-venv)"
    "$python" -m venv "$venv"
  fi
fi

if command -v uv >/dev/null; then
  uv=(uv)
else
  [ -x "$venv/bin/uv" ] ||
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r "$here/uv.txt" ||
    fail "could not fetch uv with pip; is the package index reachable?"
  uv=("$venv/bin/uv")
fi

pip() {
  "${uv[@]}" pip install -q --compile-bytecode --python "$venv/bin/python" "$@" ||
    fail "could not install what requirements/$lock.txt names; is the package index reachable?"
}
pip --require-hashes --only-binary :all: -r "$here/$lock.txt"
pip --no-deps --no-build-isolation --editable "$here/.."
touch "$venv/.$lock"
