#!/usr/bin/env bash
# B25: an interrupted benchmark keeps what is done, and leaves no server and no directory behind.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
export TMPDIR=$work/tmp
mkdir "$TMPDIR"

nothing_left() {
  [ -z "$(ls -A "$TMPDIR")" ] || fail_test "left behind in TMPDIR: $(ls -A "$TMPDIR")"
  ! pgrep -f "$TMPDIR" >/dev/null || fail_test "still running: $(pgrep -af "$TMPDIR")"
}

set -m
for case in INT:contention TERM:choose INT:capacity INT:run; do
  command=${case#*:}
  mkfifo told
  idem bench "$command" --time 100s --out "stopped-$command" >stopped.out 2>told &
  bench=$!
  exec 3<told
  while read -r line <&3; do case $line in *'keeps what is'* | *done\)*) break ;; esac; done
  kill -"${case%:*}" "$bench"
  cat <&3 >stopped.err
  status=0
  wait "$bench" || status=$?
  exec 3<&-
  rm told
  expected=130
  [ "${case%:*}" = INT ] || expected=143
  [ "$status" = "$expected" ] || fail_test "$command ended with $status: $(cat stopped.out stopped.err)"
  [ "$(json "stopped-$command/results.json" interrupted)" = True ] || fail_test "$command: not marked"
  grep -q 'interrupted' "stopped-$command/report.html" || fail_test "$command: the page does not say so"
  [ "$command" != choose ] || ! grep -q RECOMMENDED stopped.out || fail_test 'half a comparison recommends'
  nothing_left
done

# Two builds in turns: the signal reaches the turn that runs, whole pairs count.
cat >old <<'SCRIPT'
#!/bin/sh
echo turn >>turns
exec idem "$@"
SCRIPT
chmod +x old
cp old new
mkfifo told
idem bench ab --json ./old ./new --time 100s --pairs 100 -- --stores sqlite --clients 1 >stopped.out 2>told &
bench=$!
exec 3<told
until [ -f turns ] && [ "$(wc -l <turns)" -ge 4 ]; do read -r -t 0.1 <&3 || true; done
kill -INT "$bench"
cat <&3 >stopped.err
status=0
wait "$bench" || status=$?
exec 3<&-
[ "$status" = 130 ] || fail_test "ab ended with $status: $(cat stopped.out stopped.err)"
[ "$(json stopped.out pairs)" -ge 1 ] || fail_test "whole pairs were lost: $(cat stopped.out)"
nothing_left
