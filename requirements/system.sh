#!/usr/bin/env bash
# What `make test-system` needs beyond Python: a browser for the report, mount and setpriv for bad disks and other users,
# engines (Docker, Podman), a registry, Debian root file systems and a container runtime for the images, Slurm with
# accounting, what UCX is compiled with, and the shells whose completions are tested.
set -euo pipefail
missing=()
need() { command -v "$1" >/dev/null || missing+=("$2"); } # PROGRAM PACKAGE
PATH=$PATH:/usr/sbin
need chromium chromium
need setpriv util-linux
need mount mount
need git git
need dockerd docker.io
need podman podman
need docker-registry docker-registry
need debootstrap debootstrap
need mksquashfs squashfs-tools
need squashfuse squashfuse
need ch-run charliecloud-runtime
need slurmctld slurmctld
need slurmctld slurm-wlm-basic-plugins # which have no program of their own
need slurmd slurmd
need srun slurm-client
need munged munge
need slurmdbd slurmdbd
need mariadbd mariadb-server
need ip iproute2
[ -e /usr/share/modules/init/bash ] || missing+=(environment-modules)
need sshd openssh-server
need strace strace
need gcc gcc
need g++ g++
need autoreconf autoconf
need automake automake
need libtoolize libtool
command -v apptainer >/dev/null || need patchelf patchelf
get_others() { # from other releases of Debian
  for program in buildx apptainer; do
    bash "${BASH_SOURCE[0]%/*}/$program.sh" || echo "make test-system: $program could not be installed" >&2
  done
}
if ((${#missing[@]} == 0)); then
  get_others
  exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  printf 'make test-system: please install %s; the tests that need it are skipped\n' "${missing[*]}" >&2
  exit 0
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
get_others
