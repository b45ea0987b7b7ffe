#!/usr/bin/env bash
# The demo is the first thing a stranger sees: it must hold, soon, and leave nothing behind.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
mkdir scratch
export TMPDIR=$work/scratch
expect_exit 0 idem demo
expect_text out 'executions: 1'
expect_text out 'both have the same bytes'
expect_text out 'kill -9'
expect_text out 'takeover, attempt 2'
expect_text out "late complete is refused: lost"
expect_text out 'all of it held'
! grep -q '  NO  ' out || fail_test 'a fact does not hold'
[ -z "$(ls scratch)" ] || fail_test "left behind: $(ls scratch)"
# interrupted COMMAND...: once it has made something, each signal ends it as usual, and nothing stays.
interrupted() {
  local case pid status
  for case in TERM:143 INT:130; do
    set -m # else a background job ignores SIGINT
    "$@" >interrupted 2>&1 &
    pid=$!
    set +m
    until [ -n "$(ls scratch)" ]; do kill -0 $pid || fail_test 'it ended'; done
    kill -s "${case%:*}" $pid
    status=0
    wait $pid || status=$?
    [ "$status" = "${case#*:}" ] || fail_test "SIG${case%:*} ended it with $status: $(cat interrupted)"
    [ -z "$(ls scratch)" ] || fail_test "left behind by SIG${case%:*}: $(ls scratch)"
  done
}
interrupted idem demo
# So does a script in real time, in the middle of a long wait.
echo '{"op":"advance","by":"1h"}' >long.jsonl
interrupted idem script --real-time --store "sqlite:$work/scratch/s.db" long.jsonl
expect_exit 0 idem demo --json
[ "$(json out outcome)" = passed ] || fail_test 'not passed'
