#!/usr/bin/env bash
# Every scenario file over a store that needs servers of its own, or is made of two; and that nothing
# of the private stores is left behind.
#   on_servers.sh IDEM redis|cluster|tls|memory+sqlite|redis+sqlite
set -euo pipefail
idem=$(realpath "$1") kind=$2
here=$(dirname "$(realpath "$0")")
services=$here/../../scripts/services
work=$(mktemp -d)
export IDEM_SERVICES_DIR=$work/s
clean_up() {
  "$services" down >/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
cd "$work"

up() { "$services" up "$1" | cut -d' ' -f2; }
encoded() { python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1], safe=""))' "$1"; }

server=
case $kind in
  redis | cluster | tls) server=$(up "$kind") url=$server ;;
  memory+sqlite) url="tiered:?front=memory%3A&back=$(encoded "sqlite:///$work/back.db")" ;;
  redis+sqlite)
    server=$(up redis)
    url="tiered:?front=$(encoded "$server")&back=$(encoded "sqlite:///$work/back.db")"
    ;;
  *)
    echo "no such store: $kind" >&2
    exit 2
    ;;
esac

# What is there already is not touched: a record of the store at the URL itself.
"$idem" key claim bystander --lease 1h --store "${url/#tiered:*/memory:}" >/dev/null
files=("$here"/*.jsonl)
[ ${#files[@]} -gt 20 ]
"$idem" script --quiet --store "$url" "${files[@]}"

left=$(find . -name '*beside*')
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
if [ "$kind" = redis ]; then
  "$idem" key get bystander --store "$url" >/dev/null
  keys=$(redis-cli -p "${server##*:}" dbsize)
  [ "$keys" = 1 ] || { echo "left behind: $(redis-cli -p "${server##*:}" keys '*')" >&2; exit 1; }
fi
if [ "$kind" = redis+sqlite ]; then
  keys=$(redis-cli -p "${server##*:}" dbsize)
  [ "$keys" = 0 ] || { echo "left behind: $(redis-cli -p "${server##*:}" keys '*')" >&2; exit 1; }
fi
