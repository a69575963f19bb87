#!/usr/bin/env bash
# docker buildx for `make test-system`. Debian 12 has none: this installs that of Debian 13, which runs there as it is.
set -euo pipefail
plugins=/usr/libexec/docker/cli-plugins
if [ -x "$plugins/docker-buildx" ]; then exit 0; fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then exit 1; fi
# shellcheck source=requirements/other_debian.sh
. "${BASH_SOURCE[0]%/*}/other_debian.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fetch trixie docker-buildx
dpkg -x docker-buildx_*.deb .
mkdir -p "$plugins"
cp ".$plugins/docker-buildx" "$plugins/"
