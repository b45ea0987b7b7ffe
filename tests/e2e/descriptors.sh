#!/usr/bin/env bash
# What the process is given and passes on: closed and full standard streams, a command's descriptors,
# files that are none.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# A standard error that cannot be written changes neither what runs nor the exit status.
for sink in '2>/dev/full' '2>&-'; do
  rm -f a.db* ran
  bash -c "idem run --key k --store sqlite:a.db -- sh -c 'echo x >>ran' $sink" >out || fail_test "run $sink: $?"
  [ "$(wc -l <ran)" = 1 ] || fail_test "did not run with $sink"
  status=0
  bash -c "idem run --key k --store sqlite:a.db -- echo other $sink" >out || status=$?
  [ "$status" = 12 ] || fail_test "a mismatch with $sink ends with $status"
done

# A closed standard output is not the next file that is opened: the answer is lost, and that is said.
rm -f a.db*
status=0
bash -c "idem run --key k --store sqlite:a.db -- echo 1234567 <&- >&-" 2>err || status=$?
[ "$status" = 4 ] || fail_test "a closed standard output ends with $status: $(cat err)"

# A command gets what the shell gave, and nothing of ours.
echo given >given
bash -c "idem run --key fds --store sqlite:b.db -- sh -c 'cat <&5; ls /proc/self/fd'" 5<given >out
grep -qx given out || fail_test "descriptor 5 did not come through: $(cat out)"
bash -c "sh -c 'cat <&5; ls /proc/self/fd'" 5<given >plain
cmp -s out plain || fail_test "a command has other descriptors than without idem: $(diff out plain)"

# One store cannot stand before itself.
status=0
timeout 10 bash -c "idem run --key t --store 'tiered:?front=sqlite%3As.db&back=sqlite%3As.db' -- echo x" 2>err || status=$?
[ "$status" = 2 ] || fail_test "a tier before itself ends with $status: $(cat err)"

# A file without an end is refused, not read for ever.
for words in 'key claim k --store sqlite:d.db --request-file /dev/zero' 'config check --config /dev/zero' \
  'run --key k --request /dev/zero -- echo x'; do
  status=0
  # shellcheck disable=SC2086
  timeout 60 idem $words >out 2>err || status=$?
  [ "$status" = 2 ] || fail_test "idem $words ends with $status: $(cat err)"
  grep -qE 'MiB' err || fail_test "idem $words does not say why: $(cat err)"
done

# Export: a link's target is written, devices and pipes stay what they are, nothing is left over.
idem key claim k --store sqlite:c.db >/dev/null
mkfifo pipe
for target in pipe .; do
  status=0
  idem store export "$target" --store sqlite:c.db 2>err || status=$?
  [ "$status" = 2 ] || fail_test "export to $target ends with $status: $(cat err)"
done
[ -p pipe ] || fail_test 'the pipe was replaced'
mkdir elsewhere && ln -s elsewhere/target link
idem store export link --store sqlite:c.db >/dev/null
[ -L link ] || fail_test 'the link was replaced'
[ "$(stat -c %a elsewhere/target)" = 600 ] || fail_test 'others may read an export'
for _ in 1 2 3 4; do idem store export many.jsonl --store sqlite:c.db >/dev/null & done
for job in $(jobs -p); do wait "$job" || fail_test 'exports to one file disturb each other'; done
left=$(find . -name '*.jsonl.*' -o -name 'target.*' -o -name '*.part')
[ -z "$left" ] || fail_test "left over: $left"
