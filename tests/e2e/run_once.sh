#!/usr/bin/env bash
# A command that runs twice under one key is what `idem run` exists to prevent.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# Twice: one execution, same bytes, same exit status.
expect_exit 3 idem run --key nightly -- sh -c 'echo ran >>runs; date +%s%N; exit 3'
expect_text err "$work/state/idem/run.db"
cp out first
expect_exit 3 idem run --key nightly -- sh -c 'echo ran >>runs; date +%s%N; exit 3'
cmp out first
[ ! -s err ] || fail_test "a replay says something: $(cat err)"
[ "$(wc -l <runs)" = 1 ] || fail_test 'ran more than once'
expect_exit 12 idem run --key nightly -- sh -c 'another command line'
# Words are told apart: "a b" is not "a" "b".
expect_exit 0 idem run --key words -- printf '%s\n' 'a b'
expect_exit 12 idem run --key words -- printf '%s\n' a b
# What makes runs the same may be a file instead.
echo 1 >request
expect_exit 0 idem run --key file --request request -- echo one
expect_exit 0 idem run --key file --request request -- echo two
[ "$(cat out)" = one ] || fail_test "not replayed: $(cat out)"
expect_exit 3 idem run --key nightly --json -- sh -c 'echo ran >>runs; date +%s%N; exit 3'
[ "$(json out outcome)" = replay ] || fail_test 'no replay'
[ "$(json out stdout)" = "$(cat first)" ] || fail_test 'not the same bytes in JSON'

# Eight at once.
rm -f runs
for i in 1 2 3 4 5 6 7 8; do
  idem run --key eight --wait 60s -- sh -c 'echo ran >>runs; date +%s%N' >"eight.$i" 2>"eight.err.$i" &
done
for job in $(jobs -p); do wait "$job" || fail_test "one of eight failed: $(cat eight.err.*)"; done
[ "$(wc -l <runs)" = 1 ] || fail_test "$(wc -l <runs) executions instead of 1"
[ "$(sort -u eight.[1-8] | wc -l)" = 1 ] || fail_test 'eight outputs are not equal'
[ -s eight.1 ] || fail_test 'empty output'

# Every byte comes back.
head -c 4096 /dev/urandom >bytes
expect_exit 0 idem run --key bytes -- cat bytes
cmp out bytes
expect_exit 0 idem run --key bytes -- cat bytes
cmp out bytes

# Too much output to keep: told once in full, never run again.
rm -f runs
for wanted in 0 10 10; do
  expect_exit $wanted idem run --key big --max-output 1KiB -- sh -c 'echo ran >>runs; cat bytes'
  [ $wanted != 0 ] || cmp out bytes
done
expect_text err '4096 bytes'
[ "$(wc -l <runs)" = 1 ] || fail_test 'an output too large to keep was made twice'

expect_text err "$(sha256sum <bytes | cut -d ' ' -f 1)"

# What is not kept is not held in memory either (a sanitizer holds 200 MB of its own).
rm -f runs
idem run --key flood --max-output 1KiB -- sh -c 'echo ran >>runs; head -c 400000000 /dev/zero
  grep VmHWM /proc/$PPID/status | tr -dc 0-9 >peak' | head -c 400000000 | wc -c >flood
[ "$(cat flood)" = 400000000 ] || fail_test "$(cat flood) bytes came through"
[ "$(cat peak)" -lt 350000 ] || fail_test "idem run held $(cat peak) kB"
expect_exit 10 idem run --key big --max-output 1KiB --json -- sh -c 'echo ran >>runs; cat bytes'
[ "$(json out stdout_bytes)" = 4096 ] || fail_test "$(cat out)"
[ "$(wc -l <runs)" = 1 ] || fail_test 'a flood was made twice'

# However small the limit is, and exactly at it; over what the store can keep: said before it runs.
rm -f runs
for limit in 0 50 4095 4096; do
  wanted=10
  [ $limit != 4096 ] || wanted=0
  expect_exit 0 idem run --key "limit-$limit" --max-output $limit -- sh -c 'echo ran >>runs; cat bytes'
  expect_exit $wanted idem run --key "limit-$limit" --max-output $limit -- sh -c 'echo ran >>runs; cat bytes'
done
[ "$(wc -l <runs)" = 4 ] || fail_test "ran $(wc -l <runs) times instead of 4"
expect_exit 2 idem run --key huge --max-output 64MiB -- sh -c 'echo ran >>runs'
expect_exit 2 idem run --key huge --max-output 18446744073709551615 -- sh -c 'echo ran >>runs'
[ "$(wc -l <runs)" = 4 ] || fail_test 'a limit that cannot be kept was found out too late'

# --retry-failed: a failure is no result.
rm -f runs
for wanted in 1 1 0 0; do
  expect_exit $wanted idem run --key flaky --retry-failed -- \
    sh -c 'echo ran >>runs; [ "$(wc -l <runs)" -ge 3 ] && echo done'
done
[ "$(wc -l <runs)" = 3 ] || fail_test "ran $(wc -l <runs) times instead of 3"
[ "$(cat out)" = 'done' ] || fail_test 'the success is not replayed'

# What cannot be started leaves the key free.
expect_exit 127 idem run --key missing -- no-such-command
expect_text err "cannot run 'no-such-command'"
expect_exit 3 idem key get missing --store "sqlite:///$work/state/idem/run.db"
expect_exit 126 idem run --key directory -- ./bin
# But not where an attempt before it ran: what was asked, and how often, stays.
rm -f runs
printf '#!/bin/sh\necho ran >>runs\nexec sleep 30\n' >job
chmod +x job
idem run --key later --lease 1s -- ./job &
while [ ! -s runs ]; do :; done
kill -9 $!
chmod -x job
expect_exit 126 idem run --key later --lease 1s --wait 10s -- ./job
expect_text err 'nothing was done by this attempt'
expect_exit 12 idem run --key later -- echo another
expect_exit 0 idem key get later --store "sqlite:///$work/state/idem/run.db"
expect_text out 'attempt  2'
expect_exit 2 idem run --key nothing
expect_exit 2 idem run --key k --store sqlite::memory: -- true
expect_text err 'nobody would find what it holds'
