#!/usr/bin/env bash
# Servers that outlive their test, or files that do, make the next test lie.
#   services.sh IDEM, then the script's own names; as root and as a user
# shellcheck source=tests/e2e/lib.sh
services=$(realpath "$(dirname "$0")/../../scripts/services")
. "$(dirname "$0")/lib.sh"
chmod 755 "$work"

cycle() { # DIRECTORY NAME...
  export IDEM_SERVICES_DIR=$1
  shift
  expect_exit 0 "$services" up "$@"
  cp out urls
  expect_exit 0 "$services" up "$@"
  cmp out urls # a second up changes nothing
  expect_exit 0 "$services" status "$@"
  [ "$(grep -c ' up ' out)" = $# ] || fail_test "not all up: $(cat out)"
  while read -r name url; do
    case $url in mysql:*) idem stores | grep -q mysql || continue ;; esac
    expect_exit 0 idem key claim "$name" --store "$url"
    expect_exit 11 idem key claim "$name" --store "$url"
  done <urls
  cat "$IDEM_SERVICES_DIR"/*/*/pid >pids
  [ -s pids ] || fail_test 'no pids'
  expect_exit 0 "$services" down "$@"
  while read -r pid; do
    [ ! -e "/proc/$pid" ] || fail_test "process $pid is left: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
  done <pids
  [ ! -e "$IDEM_SERVICES_DIR" ] || fail_test "files are left: $(ls -R "$IDEM_SERVICES_DIR")"
  expect_exit 1 "$services" status "$@"
  expect_exit 0 "$services" down "$@" # nothing to do
}

cycle "$work/own" redis cluster tls replica mariadb

# Wherever it is: below the caller's directory, behind a link.
mkdir real
ln -s real link
for place in relative link/s; do
  export IDEM_SERVICES_DIR=$place
  expect_exit 0 "$services" up redis
  expect_exit 0 "$services" status redis
  [ -s "$place/redis/url" ] || fail_test "not below $place"
  expect_exit 0 "$services" down redis
  [ ! -e "$place" ] || fail_test "files are left below $place"
done
IDEM_SERVICES_DIR="$work/with space" expect_exit 2 "$services" up redis
expect_text err 'no spaces'
IDEM_SERVICES_DIR=$work/$(printf '%0100d' 0) expect_exit 2 "$services" up redis
expect_text err 'too long'

# Two at once: one server, one answer.
export IDEM_SERVICES_DIR=$work/twice
for i in 1 2 3; do "$services" up redis >"up$i" 2>&1 & done
wait
[ "$(sort -u up1 up2 up3 | wc -l)" = 1 ] || fail_test "not the same: $(cat up1 up2 up3)"
[ "$(for pid in $(pgrep redis-server); do readlink "/proc/$pid/cwd"; done | grep -c "^$work/twice/")" = 1 ] ||
  fail_test 'more than one server'
expect_exit 0 "$services" down redis

# One that was killed is told, and comes back.
export IDEM_SERVICES_DIR=$work/killed
expect_exit 0 "$services" up redis
pid=$(cat "$IDEM_SERVICES_DIR/redis/server/pid")
kill -9 "$pid"
tail --pid="$pid" -f /dev/null
expect_exit 1 "$services" status redis
expect_exit 0 "$services" up redis
expect_exit 0 "$services" down redis

expect_exit 2 "$services" up rediss
expect_text err "no service 'rediss'"
expect_exit 2 "$services" nonsense

# As a user without rights, if we are root and can become one.
if [ "$(id -u)" = 0 ]; then
  mkdir nobody
  chown nobody nobody
  export IDEM_SERVICES_DIR=$work/nobody/s
  as_nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
  expect_exit 0 as_nobody "$services" up redis mariadb
  expect_exit 0 as_nobody "$services" status redis mariadb
  expect_exit 0 as_nobody "$services" down redis mariadb
  [ ! -e "$IDEM_SERVICES_DIR" ] || fail_test 'files are left'
fi
