# shellcheck shell=bash
# Shared by the scripts beside it; sourced, never run.

# Every script's head comment is its manual. (Sourced from the project's root.)
case ${1-} in
  -h | --help)
    sed -n '2,/^[^#]/ { s/^# \{0,1\}//p; s/^#$//p }' "scripts/${0##*/}"
    exit 0
    ;;
esac

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

# How many things to do at once: a core each, and never so many compilers that memory runs out.
jobs_wanted() {
  local cores gigabytes
  cores=$(nproc)
  gigabytes=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  if [ "$gigabytes" -lt "$cores" ]; then cores=$((gigabytes > 0 ? gigabytes : 1)); fi
  echo "${IDEM_JOBS:-$cores}"
}

# The presets take the compiler launcher from here; ccache if there is one.
use_ccache() {
  if [ -z "${IDEM_COMPILER_LAUNCHER+set}" ] && command -v ccache >/dev/null; then
    export IDEM_COMPILER_LAUNCHER=ccache
  fi
}
