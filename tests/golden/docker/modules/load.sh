# shellcheck shell=bash
# Software of site summit. Rendered by gpubench; sourced by the shell that starts a process.
if ! command -v module >/dev/null && [ -r "${MODULESHOME:-}/init/bash" ]; then
  # shellcheck disable=SC1091
  . "$MODULESHOME/init/bash"
fi
if ! command -v module >/dev/null; then
  echo "gpubench: there is no module command on $(hostname)" >&2
  exit 5
fi
module purge
# What a login shell put there belongs to no image.
unset LD_LIBRARY_PATH
module load gcc/7.4.0 || {
  echo 'gpubench: module gcc/7.4.0 can'"'"'t be loaded' >&2
  exit 3
}
module load cuda/10.1.243 || {
  echo 'gpubench: module cuda/10.1.243 can'"'"'t be loaded' >&2
  exit 3
}
module load ucx/1.8.0 || {
  echo 'gpubench: module ucx/1.8.0 can'"'"'t be loaded' >&2
  exit 3
}
export PATH='/ccs/proj/o'"'"'neill/1.8.0/bin':$PATH
export LD_LIBRARY_PATH='/ccs/proj/o'"'"'neill/1.8.0/lib'${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
