#!/usr/bin/env bash
# Whatever becomes of `idem run`, of its readers and of what its command started: no second command begins
# while something of the first one lives.  run_guard.sh IDEM [CASE...]
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
shift
export IDEM_STORE=sqlite:jobs.db
set -m # else a background job ignores SIGINT
mkfifo started never go

# Who is dead and not reaped does nothing any more.
gone() { ! grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null; }
# ended PID WHAT: it ends by itself.
ended() { timeout 30 tail --pid="$1" -f /dev/null || fail_test "$2 does not end"; }
# ends_with STATUS: the run does, by itself.
ends_with() {
  local status=0
  ended "$run" 'the run'
  wait "$run" || status=$?
  [ "$status" = "$1" ] || fail_test "it ended with $status instead of $1: $(cat run.err)"
}
# until_true COMMAND...: an event, and not for ever.
until_true() {
  local end=$((SECONDS + 30))
  until "$@"; do [ $SECONDS -lt $end ] || fail_test "never: $*"; done
}
writes_in_vain() { cat /proc/"$1"/task/*/wchan 2>/dev/null | grep -q pipe_write; }
is_stopped() { grep -q '^State:.T' "/proc/$1/status"; }
listens() { find "/proc/$1/fd" -lname '*signalfd*' 2>/dev/null | grep -q .; }
# full_pipe NAME: a pipe that takes nothing more, held open at 8.
full_pipe() {
  mkfifo "$1"
  exec 8<>"$1"
  python3 -c '
import os, sys
pipe = os.open(sys.argv[1], os.O_RDWR | os.O_NONBLOCK)
try:
    while True: os.write(pipe, b"x" * 4096)
except BlockingIOError: pass' "$1"
}
# lock_store: nobody writes to it, until unlock_store.
lock_store() {
  mkfifo locked unlock
  python3 -c '
import sqlite3
store = sqlite3.connect("jobs.db", isolation_level=None)
store.execute("BEGIN IMMEDIATE")
open("locked", "w").close()
open("unlock").close()' &
  locker=$!
  : <locked
}
unlock_store() {
  : >unlock
  wait "$locker"
  rm locked unlock
}

# The command fills the pipe of our output from its standard error: a write that poll() promised blocks.
start_shared() { # KEY LEASE
  rm -f pids
  python3 - "$1" "$2" <<'P' &
import os, subprocess, sys
read, write = os.pipe()
run = subprocess.Popen(["idem", "run", "--key", sys.argv[1], "--lease", sys.argv[2], "--", "sh", "-c",
                        "echo $$ >command; (yes error >&2) & exec yes out"], stdout=write, stderr=write)
os.close(write)
def main_thread():
    return "pipe_write" in open(f"/proc/{run.pid}/wchan").read()
for piece in range(3000):
    os.read(read, 4096)
    if all(main_thread() for look in range(50)): break
with open("pids.new", "w") as pids: pids.write(str(run.pid))
os.rename("pids.new", "pids")
status = run.wait()
sys.exit(status if status >= 0 else 128 - status)
P
  holder=$!
  until_true test -e pids
  run=$(cat pids)
  command=$(cat command)
}
shared_pipe_lost() {
  start_shared shared-lost 1s
  expect_exit 0 idem key force-release shared-lost --force --yes
  ended "$command" 'a command without a lease that fills the pipe of its run'
  kill -9 "$run"
}
shared_pipe() {
  start_shared shared 1h
  kill -TERM "$run"
  ended "$command" 'an interrupted command that fills the pipe of its run'
  status=0
  ended "$holder" 'an interrupted run whose pipe is full'
  wait "$holder" || status=$?
  [ "$status" = 143 ] || fail_test "it ended with $status"
  expect_exit 0 idem key get shared
  expect_text out 'interrupted by SIGTERM'
}

# Whoever in the group does not hear SIGTERM would live on beside the next run.
worker='(trap "" TERM; exec >&- 2>&-; read -r me rest </proc/self/stat; echo $me >worker; while :; do read -r _ <never; done) &
  until [ -s worker ]; do :; done; echo $$ >started; read -r _ <never'
start_worker() { # KEY
  rm -f worker
  idem run --key "$1" --lease "$2" -- sh -c "$worker" >run.out 2>run.err &
  run=$!
  read -r command <started
}
rest_of_group_after_signal() {
  start_worker rest-signal 1h
  kill -TERM "$run"
  ends_with 143
  gone "$(cat worker)" || fail_test 'a run that was interrupted left a worker'
  expect_exit 0 idem key get rest-signal
  expect_text out 'the next claim tries again'
}
rest_of_group_after_loss() {
  start_worker rest-lost 1s
  expect_exit 0 idem key force-release rest-lost --force --yes
  ends_with 17
  gone "$(cat worker)" || fail_test 'a run that lost its lease left a worker'
}
# Who is dead and not reaped by a parent that left the group keeps nobody waiting.
unreaped_in_group() {
  cat >leaver.py <<'P'
import os, time
if os.fork() == 0: os._exit(0)
os.setsid()
open("leaver", "w").write(str(os.getpid()))
os.execlp("tail", "tail", "-f", "/dev/null")
P
  idem run --key unreaped -- sh -c 'python3 leaver.py >/dev/null 2>&1 & until [ -s leaver ]; do :; done; echo $$ >started; read -r _ <never' 2>run.err &
  run=$!
  read -r command <started
  kill -TERM "$run"
  ends_with 143
  kill "$(cat leaver)"
}

# The result first, the words later.
result_before_words() {
  expect_exit 0 idem run --key other -- true
  full_pipe errors
  idem run --key first --lease 1h --store 'sqlite:jobs.db?busy_timeout=100ms' -- \
    sh -c 'echo ran >>runs; echo $$ >started; read -r _ <go; echo result' >run.out 2>errors &
  run=$!
  read -r command <started
  lock_store
  : >go
  until_true writes_in_vain "$run"
  unlock_store
  succeeded() { idem key get first | grep -q 'state    success'; }
  until_true succeeded
  cat <&8 >run.err &
  reader=$!
  ends_with 0
  kill "$reader"
  exec 8>&-
  expect_exit 0 idem run --key first --lease 1h -- \
    sh -c 'echo ran >>runs; echo $$ >started; read -r _ <go; echo result'
  [ "$(wc -l <runs)" = 1 ] || fail_test 'a command that succeeded ran twice'
}

# kill -9 at any moment: what the command started ends with it.
killed_at_once() {
  for try in $(seq 20); do
    rm -f left
    status=0
    idem run --key "at-once-$try" -- sh -c 'tail -f /dev/null & echo $! >left; kill -9 $PPID; exec tail -f /dev/null' 2>/dev/null || status=$?
    [ "$status" = 137 ] || fail_test "kill -9 ended it with $status"
    until_true gone "$(cat left)"
  done
}
# Where there can be no guard there is no command.
no_guard() {
  if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then return; fi
  mkdir -m 777 other
  chmod 711 .
  for limit in $(seq 2 12); do
    setpriv --reuid 54321 --regid 54321 --clear-groups prlimit --nproc="$limit" \
      "$(realpath bin/idem)" run --store sqlite:other/jobs.db --key "limit-$limit" -- \
      sh -c 'read -r children </proc/$PPID/task/$PPID/children; set -- $children; echo $# >>other/children' >run.out 2>run.err || true
    ! grep -q 'no guard' run.err || cp run.err no_guard.err
  done
  [ -s other/children ] || fail_test 'it never ran'
  ! grep -qv '^2$' other/children || fail_test 'a command began without a guard'
  expect_text no_guard.err "cannot run 'sh': no guard can be started for it"
}

# A run that is stopped renews no lease.
stopped_run() {
  cat >job <<'P'
trap "" TERM
if [ -s first ]; then
  if grep -q '^State:.[^ZX]' "/proc/$(cat first)/status"; then echo beside; fi >second
  exit 0
fi
echo $$ >first
echo $$ >started
while :; do read -r _ <never; done
P
  idem run --key stopped --lease 2s -- sh job >run.out 2>run.err &
  run=$!
  read -r command <started
  kill -STOP "$run"
  expect_exit 0 idem run --key stopped --lease 2s --wait 60s -- sh job
  [ ! -s second ] || fail_test 'a second command began beside the first'
  gone "$command" || fail_test 'the command of a stopped run lives on'
  kill -CONT "$run"
  ends_with 17
}
terminal_stops() {
  for signal in TTOU TTIN TSTP; do
    idem run --key "terminal-$signal" -- sh -c 'echo $$ >started; read -r _ <go' >run.out 2>run.err &
    run=$!
    read -r command <started
    kill -"$signal" "$run"
    echo >go
    ends_with 0
  done
}
# The guard has asked the command to end: that is no result.
guard_ended_it() {
  idem run --key asked --lease 1s -- sh -c 'trap "exit 0" TERM; echo $$ >started; while :; do read -r _ <never; done' >run.out 2>run.err &
  run=$!
  read -r command <started
  kill -STOP "$run"
  until_true grep -q '^State:.Z' "/proc/$command/status"
  kill -CONT "$run"
  ends_with 17
  expect_exit 0 idem key get asked
  ! grep -q success out || fail_test "$(cat out)"
}

# What an interruption says: no result is kept.
interrupted_with_stalled_reader() {
  mkfifo reader
  exec 8<>reader
  idem run --key advice -- sh -c 'echo $$ >started; exec yes' >reader 2>run.err &
  run=$!
  read -r command <started
  until_true writes_in_vain "$command"
  kill -INT "$run"
  ends_with 130
  exec 8>&-
  expect_text run.err "the next run of 'advice' starts again"
  ! grep -q replayed run.err || fail_test "$(cat run.err)"
  expect_exit 4 sh -c 'idem run --key advice-failed --retry-failed -- sh -c "echo out; exit 1" >/dev/full'
  ! grep -q replayed err || fail_test "$(cat err)"
}

# A last word that nobody reads can be interrupted.
blocked_last_word() {
  full_pipe words
  idem run --key last-word --lease 1s -- sh -c 'echo $$ >started; read -r _ <never' >run.out 2>words &
  run=$!
  read -r command <started
  expect_exit 0 idem key force-release last-word --force --yes
  ended "$command" 'a command whose lease was lost'
  until_true writes_in_vain "$run"
  echo >run.err
  kill -TERM "$run"
  ends_with 143
  exec 8>&-
}
# A stopped command hears a signal that is passed on.
stopped_command() {
  for case in TERM:143 HUP:129; do
    idem run --key "still-${case%:*}" -- sh -c 'echo $$ >started; kill -STOP $$; read -r _ <never' >run.out 2>run.err &
    run=$!
    read -r command <started
    until_true is_stopped "$command"
    kill -"${case%:*}" "$run"
    ends_with "${case#*:}"
  done
}
# A signal during a store call that then fails is an interruption.
signal_during_claim() {
  expect_exit 0 idem run --key other -- true
  lock_store
  idem run --key during --store 'sqlite:jobs.db?busy_timeout=2s' -- sh -c 'echo ran >>during' >run.out 2>run.err &
  run=$!
  until_true listens "$run"
  kill -TERM "$run"
  ends_with 143
  unlock_store
  [ ! -e during ] || fail_test 'it ran'
}

shortest_lease() {
  expect_exit 2 idem run --key short --lease 99ms -- sh -c 'echo ran >>short'
  expect_text err '100ms is the least'
  [ ! -e short ] || fail_test 'it ran'
}
# A claim that was answered when its lease may be over begins nothing.
late_claim() {
  expect_exit 0 idem run --key other -- true
  lock_store
  idem run --key late --lease 200ms --store 'sqlite:jobs.db?busy_timeout=60s' -- sh -c 'echo ran >>late' >run.out 2>run.err &
  run=$!
  until_true listens "$run"
  timeout 2 cat never || true # its lease goes by
  unlock_store
  ends_with 17
  expect_text run.err 'was not started'
  [ ! -e late ] || fail_test 'it ran'
}

all=(shared_pipe shared_pipe_lost rest_of_group_after_signal rest_of_group_after_loss unreaped_in_group result_before_words
  killed_at_once no_guard stopped_run terminal_stops guard_ended_it interrupted_with_stalled_reader
  blocked_last_word stopped_command signal_during_claim shortest_lease late_claim)
for case in "${@:-${all[@]}}"; do
  "$case"
  echo "ok $case"
  rm -f errors words reader run.err
done
