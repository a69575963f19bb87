#!/usr/bin/env bash
# Compile the hashed locks of the old stacks with dask-cuda (*.in -> *.txt). No index host is written.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
uv=$(command -v uv || printf '../../.venv/bin/uv')
for stack in *.in; do
  python=$(sed -n 's/^# python //p' "$stack")
  "$uv" pip compile -q --python-version "$python" --generate-hashes --only-binary :all: --no-annotate \
    --no-emit-index-url --no-emit-find-links --custom-compile-command 'tests/gpu/lock.sh' -o "${stack%.in}.txt" "$stack"
done
