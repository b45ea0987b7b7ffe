# Shared by the scripts beside it; sourced, never run.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() {
  say "error: $*"
  exit 2
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@"
}

# install_packages NAME...: the package lists are refreshed only when the first try fails.
install_packages() {
  local log
  log=$(mktemp)
  if ! apt_get install -y -q --no-install-recommends "$@" >"$log" 2>&1; then
    if ! { apt_get update -q && apt_get install -y -q --no-install-recommends "$@"; } >"$log" 2>&1; then
      tail -n 20 "$log" >&2
      die "could not install: $*"
    fi
  fi
  rm -f "$log"
}

# The directory of what is unpacked for this project alone.
deps_dir() { printf '%s\n' "${IDEM_DEPS_DIR:-$PWD/.deps}"; }
