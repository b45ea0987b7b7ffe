#!/usr/bin/env bash
# A full disk is told as what it is (capacity), wherever between the first and the last byte it gets
# full: a person makes room instead of looking for a broken file.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
if ! unshare -rm true 2>/dev/null; then
  echo 'skipped: no user namespaces here, so no small file system of our own'
  exit 77
fi
mkdir small
# One of our own: gone with the namespace.
cat >inside.sh <<'INSIDE'
set -euo pipefail
cd "$1"
capacity=0
# told KEEP COMMAND...: exit status 0, or 4 and the word capacity.
told() {
  local keep=$1 status=0
  shift
  "$@" --json >out 2>err || status=$?
  [ $status != 0 ] || return 0
  if [ $status != 4 ] || ! grep -q '"error":"capacity"' out; then
    echo "with $keep KiB left, exit status $status: $(cat out err)" >&2
    exit 1
  fi
  grep -q 'make room' out
  capacity=$((capacity + 1))
}
mount -t tmpfs -o size=400k tmpfs small
for keep in $(seq 0 4 120); do
  head -c $(((400 - keep) * 1024)) /dev/zero >small/fill
  told "$keep" idem key claim k --store sqlite:small/a.db
  rm -f small/*
  # A store that is there, then no room left for its log and its shared memory.
  idem key claim k --store sqlite:small/a.db >/dev/null 2>&1
  head -c $(((300 - keep) * 1024)) /dev/zero >small/fill 2>/dev/null || true
  told "$keep" idem key get k --store sqlite:small/a.db
  told "$keep" idem key claim k2 --store sqlite:small/a.db
  rm -f small/fill
  idem key get k --store sqlite:small/a.db >/dev/null 2>&1 || { echo 'the claim is lost' >&2; exit 1; }
  rm -f small/*
done
umount small
# No inode left: no file can be made.
mount -t tmpfs -o nr_inodes=2 tmpfs small
told inodes idem key claim k --store sqlite:small/a.db
: >small/a.db
told inodes idem key claim k --store sqlite:small/a.db
echo "capacity told $capacity times"
[ $capacity -ge 20 ]
INSIDE
unshare -rm bash inside.sh "$work"

# Our own output: a part of it must not pass for the whole.
expect_exit 4 sh -c 'idem run --key full -- echo hello >/dev/full'
expect_text err 'No space left'
expect_exit 4 sh -c 'idem run --key full -- echo hello >/dev/full'
expect_text err 'No space left'
expect_exit 4 sh -c 'idem run --key full --json -- echo hello >/dev/full'
expect_text err 'could not be written'
expect_exit 4 sh -c 'idem run --key fails -- sh -c "echo hello; exit 3" >/dev/full'
expect_exit 4 sh -c 'idem run --key again --retry-failed -- sh -c "echo hello; exit 3" >/dev/full'
expect_exit 0 idem run --key full -- echo hello
[ "$(cat out)" = hello ] || fail_test 'not replayed'
for words in 'key get full' 'key list' 'store stats' 'store export' 'store doctor' 'stores' \
  '--help' 'key claim --help' '--version'; do
  expect_exit 4 sh -c "idem $words >/dev/full"
done
# A reader that wants no more is no failure.
expect_exit 0 bash -c 'set -o pipefail; idem run --key big -- head -c 1000000 /dev/zero | head -c 1 | wc -c'
