#!/usr/bin/env bash
# A run that is killed or interrupted must neither block its key for ever nor run beside its successor.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
export IDEM_STORE=sqlite:jobs.db
set -m # else a background job ignores SIGINT
mkfifo started never

# start KEY ARGUMENT...: a run whose command says its own pid and then blocks for ever.
start() {
  local key=$1
  shift
  idem run --key "$key" "$@" -- sh -c 'echo $$ >started; read -r _ <never' >run.out 2>run.err &
  run=$!
  read -r command <started
}
ended() { # PID: blocks until that process is no more; bounded by the test's own time limit
  tail --pid="$1" -f /dev/null
}

# kill -9: the command dies with its run, the key is taken over when the lease is over.
start killed --lease 8s
kill -9 "$run"
expect_exit 11 idem run --key killed --lease 8s -- sh -c 'echo $$ >started; read -r _ <never'
ended "$command"
idem run --key killed --lease 8s --wait 60s -- sh -c 'echo $$ >started; read -r _ <never' &
successor=$!
read -r second <started
[ "$second" != "$command" ] || fail_test 'no second execution'
expect_exit 0 idem key get killed
expect_text out 'attempt  2'
kill -9 "$successor"
ended "$second"

# SIGINT, SIGTERM: passed on; the claim is failed, the next run begins at once.
for case in INT:130 TERM:143; do
  start "signal-$case" --lease 1h
  kill -"${case%:*}" "$run"
  status=0
  wait "$run" || status=$?
  [ "$status" = "${case#*:}" ] || fail_test "SIG${case%:*} ended it with $status: $(cat run.err)"
  ended "$command"
  expect_exit 0 idem key get "signal-$case"
  expect_text out "interrupted by SIG${case%:*}"
  expect_text out 'the next claim tries again'
done

# A command that ends well in spite of the signal is done.
idem run --key graceful -- sh -c 'trap "echo saved; exit 0" TERM; echo $$ >started; while :; do read -r _ <never; done' >run.out &
run=$!
read -r command <started
kill -TERM "$run"
wait "$run" || fail_test "a graceful end has status $?"
expect_exit 0 idem key get graceful
expect_text out 'state    success'

# A lease that somebody else ended: the command is ended, and its result does not count.
start lost --lease 1s
expect_exit 0 idem key force-release lost --force --yes
status=0
wait "$run" || status=$?
[ "$status" = 17 ] || fail_test "a lost run ended with $status"
ended "$command"
expect_exit 3 idem key get lost

# Waiting for another run can be interrupted, too; nothing is claimed by that.
start busy --lease 1h
idem run --key busy --wait 1h -- sh -c 'echo $$ >started; read -r _ <never' 2>waiter.err &
waiter=$!
# It takes signals by descriptor; once it has one it is ready.
until find "/proc/$waiter/fd" -lname '*signalfd*' | grep -q .; do :; done
kill -INT "$waiter"
status=0
wait "$waiter" || status=$?
[ "$status" = 130 ] || fail_test "an interrupted waiter ended with $status: $(cat waiter.err)"
kill -9 "$run"

# What a command left behind on purpose holds its standard output; an interrupted run does not wait for that.
# (It names itself once it has left the group.)
idem run --key daemon -- sh -c 'setsid sh -c "echo \$\$ >daemon; exec sleep 1000" &
  until [ -s daemon ]; do :; done; echo kept; echo $$ >started; read -r _ <never' >run.out &
run=$!
read -r command <started
kill -INT "$run"
status=0
wait "$run" || status=$?
[ "$status" = 130 ] || fail_test "a run with a daemon ended with $status"
[ "$(cat run.out)" = kept ] || fail_test "its output: $(cat run.out)"
kill "$(cat daemon)"

# A reader of its output that does not go on keeps neither a signal nor the loss of the lease from the command.
mkfifo reader
exec 8<>reader # held open, never read
stalled() { # KEY LEASE
  idem run --key "$1" --lease "$2" -- sh -c 'echo $$ >started; exec yes' >reader 2>run.err &
  run=$!
  read -r command <started
}
stalled stalled-signal 1h
kill -INT "$run"
status=0
wait "$run" || status=$?
[ "$status" = 130 ] || fail_test "a run with a stalled reader ended with $status: $(cat run.err)"
ended "$command"
stalled stalled-lost 1s
expect_exit 0 idem key force-release stalled-lost --force --yes
status=0
wait "$run" || status=$?
[ "$status" = 17 ] || fail_test "a lost run with a stalled reader ended with $status: $(cat run.err)"
ended "$command"
exec 8>&-

# A command that does not hear SIGTERM is killed before its lease is over, so before its successor begins.
idem run --key deaf --lease 10s -- sh -c 'trap "" TERM; echo $$ >started; while :; do date +%s%N >beat; done' >run.out 2>run.err &
run=$!
read -r command <started
mv jobs.db gone.db # no renewal arrives any more
moved=$(date +%s%N)
status=0
wait "$run" || status=$?
ended "$command"
[ "$status" = 17 ] || fail_test "a run without its store ended with $status: $(cat run.err)"
last=$(cat beat)
[ $(((${last:-0} - moved) / 1000000)) -le 10000 ] || fail_test 'it ran on behind its lease'
