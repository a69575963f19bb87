#!/usr/bin/env bash
# A real Apptainer for `make test-system`. Debian 12 has none: this installs that of Debian sid, with the C library that
# it was built for in a directory of its own.
set -euo pipefail
if command -v apptainer >/dev/null; then exit 0; fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then exit 1; fi
# shellcheck source=requirements/other_debian.sh
. "${BASH_SOURCE[0]%/*}/other_debian.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fetch sid apptainer libc6 libseccomp2 libsqlite3-0
libraries=/opt/gpubench-apptainer
dpkg -x apptainer_*.deb apptainer
for package in libc6 libseccomp2 libsqlite3-0; do dpkg -x "$package"_*.deb libraries; done
mkdir -p "$libraries"
cp -a libraries/usr/lib/*-linux-gnu/*.so* "$libraries/"
for program in apptainer/usr/bin/apptainer apptainer/usr/lib/*-linux-gnu/apptainer/bin/starter; do
  patchelf --set-interpreter "$(echo "$libraries"/ld-linux-*.so.*)" --force-rpath --set-rpath "$libraries" "$program"
done
# Where root lacks a capability, as in many containers, Apptainer can't hand on all of them.
sed -i 's/^root default capabilities = full/root default capabilities = no/' apptainer/etc/apptainer/apptainer.conf
mkdir -p /var/lib/apptainer/mnt/session
cp -a apptainer/. /
