#!/usr/bin/env bash
# Compile the stacks' hashed locks (*.in -> *.txt) and list the libucx wheels (libucx-cu12.toml). No index host is written.
# libucx itself is left out of every stack: with no second UCX in it, a wrong one can't be loaded by accident.
# A stack that also runs on an older Python than 3.11 says so in its .in: "# python 3.9".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
uv=$(command -v uv || printf '../../.venv/bin/uv')
for stack in *[0-9].in *-gpu.in; do
  # uv keeps the versions of the file that it writes to: with GPUs a stack has those that it has without.
  [[ $stack == *-gpu.in ]] && cp "${stack%-gpu.in}.txt" "${stack%.in}.txt"
  python=$(sed -n 's/^# python //p' "$stack")
  "$uv" pip compile -q --universal --python-version "${python:-3.11}" --generate-hashes --only-binary :all: --no-annotate \
    --no-emit-index-url --no-emit-find-links --no-emit-package libucx-cu12 \
    --custom-compile-command 'docker/locks/lock.sh' -o "${stack%.in}.txt" "$stack"
done
python3 libucx.py "$uv" >libucx-cu12.toml.new
mv libucx-cu12.toml.new libucx-cu12.toml
