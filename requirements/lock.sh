#!/usr/bin/env bash
# Compile the hashed locks from pyproject.toml. No index host is written into them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
uv=$(command -v uv || printf '.venv/bin/uv')
compile() {
  local out=$1
  shift
  "$uv" pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
    --no-annotate --custom-compile-command 'make lock' -o "requirements/$out" "$@"
}
printf 'uv\n' | compile uv.txt -
compile tool.txt pyproject.toml requirements/build.in
compile dev.txt --extra dev pyproject.toml requirements/build.in
compile ansible.txt requirements/ansible.in
