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

is_new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

can_make_venv() {
  command -v uv >/dev/null || "$1" -c 'import ensurepip, venv' 2>/dev/null
}

# pyenv, for one, builds without --enable-optimizations unless it is told to, and such a Python needs a third more time.
# A distribution's own is optimized, whatever its configuration says.
is_optimized() {
  "$1" -c '
import sys, sysconfig
options = sysconfig.get_config_var("CONFIG_ARGS") or ""
sys.exit(sys.base_prefix != "/usr" and "--enable-optimizations" not in options)'
}

# The first that is optimized and can make virtual environments, else the first.
find_python() {
  local name best=
  if [ -n "${PYTHON:-}" ]; then
    is_new_enough "$PYTHON" || fail "PYTHON=$PYTHON can't be run, or is older than Python 3.11"
    printf '%s' "$PYTHON"
    return
  fi
  for name in python3 python3.13 python3.12 python3.11 /usr/bin/python3; do
    is_new_enough "$name" || continue
    best=${best:-$name}
    if can_make_venv "$name" && is_optimized "$name"; then
      best=$name
      break
    fi
  done
  [ -n "$best" ] ||
    fail "no Python 3.11 or newer found; install one, or name it: make install PYTHON=/path/to/python3.11"
  printf '%s' "$best"
}

printf 'installing into %s what requirements/%s.txt names; once, a minute or so\n' "$venv" "$lock" >&2
if [ ! -x "$venv/bin/python" ]; then
  python=$(find_python)
  "$python" -c 'import sys; print("with Python", sys.version.split()[0] + ",", sys.executable, file=sys.stderr)'
  if command -v uv >/dev/null; then
    uv venv -q --python "$python" "$venv"
  else
    can_make_venv "$python" ||
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
