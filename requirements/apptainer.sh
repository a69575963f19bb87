#!/usr/bin/env bash
# A real Apptainer for `make test-system`. Debian 12 has none: this installs that of Debian sid, with the C library that
# it was built for in a directory of its own.
set -euo pipefail
if command -v apptainer >/dev/null; then exit 0; fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then exit 1; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
# From the mirror that this machine uses.
# shellcheck disable=SC2016 # for apt-get
mirror=$(apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' 'Identifier: Packages' |
  awk '$1 == "Debian" && $2 !~ /-/ {print $3; exit}')
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$work/sid.list"
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$work/sid.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists"
  -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
"${apt[@]}" update
cd "$work"
"${apt[@]}" download apptainer libc6 libseccomp2 libsqlite3-0
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
