#!/usr/bin/env bash
# What `make test-system` needs beyond Python: a browser for the report, mount and setpriv for bad disks and other users.
set -euo pipefail
missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v setpriv >/dev/null || missing+=(util-linux)
command -v mount >/dev/null || missing+=(mount)
if ((${#missing[@]} == 0)); then exit 0; fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  printf 'make test-system: please install %s; the tests that need it are skipped\n' "${missing[*]}" >&2
  exit 0
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
