# shellcheck shell=bash
# For other scripts: fetch RELEASE PACKAGE… puts packages of another release of Debian into the current directory.
fetch() {
  local lists mirror apt
  lists=$(mktemp -d)
  mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial"
  # From the mirror that this machine uses.
  # shellcheck disable=SC2016 # for apt-get
  mirror=$(apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' 'Identifier: Packages' |
    awk '$1 == "Debian" && $2 !~ /-/ {print $3; exit}')
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" >"$lists/sources.list"
  apt=(apt-get -qq -o "Dir::Etc::sourcelist=$lists/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$lists/lists" -o "Dir::Cache=$lists/cache" -o APT::Sandbox::User=root)
  "${apt[@]}" update && "${apt[@]}" download "${@:2}"
  rm -rf "$lists"
}
