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
expect_exit 0 idem demo --json
[ "$(json out outcome)" = passed ] || fail_test 'not passed'
