#!/usr/bin/env bash
# Every scenario file over a store that needs servers of its own, or is made of two; and that nothing
# of the private stores is left behind.
#   on_servers.sh IDEM redis|cluster|tls|mysql|mysql_articles|memory+sqlite|redis+sqlite|redis+mysql
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
tables() { # in the database of mysql://idem:idem@HOST:PORT/idem, as the user sees them
  local port=${1##*:}
  mariadb --no-defaults -h 127.0.0.1 -P "${port%%/*}" -u idem -pidem -N idem -e 'SHOW TABLES' | xargs
}
encoded() { python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1], safe=""))' "$1"; }

server=
case $kind in
  redis | cluster | tls) server=$(up "$kind") url=$server ;;
  mysql) server=$(up mariadb) url=$server ;;
  mysql_articles) server=$(up mariadb) url="$server?layout=articles" ;;
  memory+sqlite) url="tiered:?front=memory%3A&back=$(encoded "sqlite:///$work/back.db")" ;;
  redis+sqlite)
    server=$(up redis)
    url="tiered:?front=$(encoded "$server")&back=$(encoded "sqlite:///$work/back.db")"
    ;;
  redis+mysql)
    server=$(up redis) back=$(up mariadb)
    url="tiered:?front=$(encoded "$server")&back=$(encoded "$back")"
    ;;
  *)
    echo "no such store: $kind" >&2
    exit 2
    ;;
esac

# What is there already is not touched: a record of the store at the URL itself.
"$idem" key claim bystander --lease 1h --store "${url/#tiered:*/sqlite:bystander.db}" >/dev/null
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
if [[ $kind = mysql* ]]; then
  "$idem" key get bystander --store "$url" >/dev/null
  left=$(tables "$server")
  [ "$left" = 'idempotent_record idempotent_record_meta' ] || { echo "left behind: $left" >&2; exit 1; }
fi
if [ "$kind" = redis+mysql ]; then
  left=$(tables "$back")
  [ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
fi
if [[ $kind = redis+* ]]; then
  keys=$(redis-cli -p "${server##*:}" dbsize)
  [ "$keys" = 0 ] || { echo "left behind: $(redis-cli -p "${server##*:}" keys '*')" >&2; exit 1; }
fi
