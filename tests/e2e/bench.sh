#!/usr/bin/env bash
# A benchmark that ends with the wrong status, or garbles a log, is not run twice.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
export TMPDIR=$work/tmp
mkdir "$TMPDIR"

short=(--time 1s --rounds 1)
nothing_left() {
  [ -z "$(ls -A "$TMPDIR")" ] || fail_test "left behind in TMPDIR: $(ls -A "$TMPDIR")"
  ! pgrep -f "$TMPDIR" >/dev/null || fail_test "still running: $(pgrep -af "$TMPDIR")"
}

# Exit status: done, no store meets the needs, usage, nothing reached.
expect_exit 0 idem bench choose --stores memory,sqlite --rate 20 --clients 2 --out choice "${short[@]}"
expect_text out 'RECOMMENDED sqlite'
expect_text out "memory falls: its tier is 'none', 'process' is needed"
expect_exit 1 idem bench choose --stores memory "${short[@]}"
expect_exit 2 idem bench choose --slo 'p99<5ms'
expect_text err '--slo needs --rate'
expect_exit 2 idem bench choose --rate 10 --slo 'p99=5ms'
expect_exit 2 idem bench capacity --stores memroy
expect_exit 2 idem bench contention --keys zipf:10
expect_exit 2 idem bench run --stores sqlit:a.db
expect_text err "did you mean 'sqlite:'?"
expect_exit 2 idem bench run --callers threads
touch occupied
for command in run choose contention capacity; do
  expect_exit 4 idem bench "$command" --stores memory --out occupied/results
  expect_text err 'cannot write there'
  ! grep -q plan err || fail_test "$command: measured first"
done
echo '{"schema": "idem.bench/1", "kind": "run"}' >part.json
expect_exit 2 idem bench report part.json
if grep -q 'json.exception' err; then fail_test "$(cat err)"; fi
expect_exit 4 idem bench choose --stores redis://127.0.0.1:1 "${short[@]}"
expect_exit 4 idem bench capacity --stores redis://127.0.0.1:1 "${short[@]}"
expect_exit 4 idem bench contention --stores redis://127.0.0.1:1 "${short[@]}"
expect_exit 1 idem bench capacity --stores memory --clients 1 --slo 'p50<1us' "${short[@]}"
expect_exit 0 idem bench capacity --stores memory --clients 1 --slo 'p50<10s' "${short[@]}"

# The recommendation is ready to use.
python3 -c 'import json; print(json.load(open("choice/results.json"))["config"])' >chosen.yml
expect_exit 0 idem config check --config chosen.yml
for file in results.json report.html report.md report.csv; do
  [ -s "choice/$file" ] || fail_test "no choice/$file"
done

# B49: made again, it is the same.
expect_exit 0 idem bench report choice/results.json --out again
for file in results.json report.html report.md report.csv; do
  cmp "choice/$file" "again/$file" || fail_test "$file differs when it is made again"
done

# B31: without stores named, all that this machine can run; what is not installed is named with the
# way to install it, and the plan is told first.
expect_exit 0 env PATH=/nowhere "$(command -v idem)" bench choose --time 4s --rounds 1
expect_text err 'plan     5 stores x 2 rounds'
expect_text out 'redis falls: not measured: unavailable: redis-server is not installed; apt-get install'
expect_text out 'RECOMMENDED'

# B31: a store that cannot be had is skipped, with its reason, and the others are measured.
expect_exit 0 idem bench contention --stores memory,redis://127.0.0.1:1 --clients 2 "${short[@]}"
expect_text out 'redis://127.0.0.1:1 skipped: unavailable'
expect_text out 'memory: a duplicate is refused at once'

# Callers that block no thread, on a store in this process and on one behind lanes.
expect_exit 0 idem bench run --stores memory,sqlite --clients 16 --callers async --crashes 2% --time 2s --rounds 2
expect_text out 'clients share one'

# B45: a fifth less is found, and fails where it is told to; noise is not.
expect_exit 0 idem bench run --stores memory --clients 1 --time 3s --rounds 7 --out base
python3 - <<'PYTHON'
import json
document = json.load(open("base/results.json"))
for name, factor in (("noisy", 1), ("slower", 0.8)):
    for row in document["rows"]:
        around = [1 + 0.01 * (i - 3) for i in range(7)]
        row["rate"]["rounds"] = [1e5 * factor * share for share in around]
    json.dump(document, open(name + ".json", "w"))
PYTHON
expect_exit 0 idem bench compare noisy.json noisy.json --fail-on regression:10%
expect_exit 1 idem bench compare noisy.json slower.json --fail-on regression:10%
expect_text out 'slower'
expect_exit 0 idem bench compare noisy.json slower.json --fail-on regression:30%

# B39, B45: two builds in turns. Each turn is a process of its own, of both alike; what it cannot do
# is told in its own words; what differs in load is refused.
cat >counting <<'SCRIPT'
#!/bin/sh
echo "$0" >>turns
exec idem "$@"
SCRIPT
cp counting other
chmod +x counting other
expect_exit 0 idem bench ab ./counting ./other --pairs 8 --time 4s -- --stores memory --clients 1
grep -q '^memory .* [01]\.[0-9]' out || fail_test "$(cat out)"
expect_text err 'plan     8 pairs of turns'
[ "$(head -4 turns | tr '\n' ' ')" = './other ./counting ./counting ./other ' ] || fail_test "$(cat turns)"
[ "$(grep -c counting turns) $(grep -c other turns)" = '8 8' ] || fail_test "$(sort turns | uniq -c)"
expect_exit 0 idem bench ab --json ./counting ./other --pairs 2 --time 1s -- --stores memory --clients 1
[ "$(json out pairs)" = 2 ] || fail_test "$(cat out)"
grep -q 'fewer than 8 pairs' out || fail_test "$(cat out)"
expect_exit 2 idem bench ab ./counting ./nosuch --time 1s
expect_text err "cannot run './nosuch'"
expect_exit 2 idem bench ab ./counting ./other --time 1s -- --stores sqlit
expect_text err "did you mean 'sqlite'"
expect_exit 2 idem bench ab ./counting ./other -- --rounds 3
expect_text err '--rounds cannot stand after --'
sed -i 's/"$@"/"$@" --payload 99/' other
expect_exit 2 idem bench ab ./counting ./other --pairs 1 --time 1s -- --stores memory --clients 1
expect_text err 'payload_bytes differs'
printf '#!/bin/sh\nkill -SEGV $$\n' >dying
printf '#!/bin/sh\nexec yes\n' >flood
chmod +x dying flood
expect_exit 2 idem bench ab ./counting ./dying --pairs 1 --time 1s
expect_text err "was killed by SIGSEGV"
expect_exit 2 idem bench ab ./counting ./flood --pairs 1 --time 1s
expect_text err 'prints without end'
expect_exit 2 idem bench choose --rate 0
expect_exit 2 idem bench ab ./counting /bin/true --pairs 1 --time 1s
expect_text err 'printed no measurement'

# B41: warnings fail a strict run. The load of a machine can always be above nothing, so a tmpfs is
# what is warned of here where there is one.
if [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then
  mkdir -p /dev/shm/idem-bench-$$
  expect_exit 1 env TMPDIR=/dev/shm/idem-bench-$$ idem bench contention --stores memory --clients 1 --strict "${short[@]}"
  expect_text out 'is a tmpfs'
  rmdir /dev/shm/idem-bench-$$
fi

# Output to a file: no escapes, no carriage returns, nothing wider than told.
expect_exit 0 env COLUMNS=60 idem bench contention --stores sqlite,memory --clients 2 "${short[@]}"
if grep -q -e $'\r' -e $'\033' out err; then fail_test 'escapes in piped output'; fi
cat out err >both
awk 'length($0) > 60 { print "wider than 60: " $0; bad = 1 } END { exit bad }' both || fail_test 'wraps'

# On a terminal of 60 columns: one line that is rewritten, never a second one.
cat >terminal.py <<'PYTHON'
import fcntl, os, pty, struct, sys, termios
pid, master = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
seen = b""
while True:
    try:
        piece = os.read(master, 65536)
    except OSError:
        break
    if not piece:
        break
    seen += piece
text = seen.decode().replace("\r\n", "\n")
assert "\r" in text, "no progress line"
for line in text.split("\n"):
    for shown in line.split("\r"):
        assert len(shown) <= 60, shown
PYTHON
python3 terminal.py idem bench contention --stores sqlite,memory --clients 2 "${short[@]}" || fail_test 'terminal'
nothing_left

# A document and nothing else on standard output; a password nowhere.
expect_exit 4 idem bench choose --json --stores redis://u:secret@127.0.0.1:1 "${short[@]}"
json out schema >/dev/null
if grep -q secret out err; then fail_test 'a password was shown'; fi

# B16: every example of help runs (shortened).
idem bench run --stores memory --clients 1 "${short[@]}" --out . >/dev/null 2>&1
mkdir -p old new && cp results.json old/ && cp results.json new/
examples=0
cp "$(command -v idem)" old/idem && cp old/idem new/idem
for command in choose contention capacity run ab compare report; do
  while IFS= read -r line; do
    case $command in compare | report) ;; ab) line=${line/ -- / --time 3s -- } ;; *) line+=' --time 1s --rounds 1' ;; esac
    examples=$((examples + 1))
    status=0
    bash -c "$line" >out 2>err || status=$?
    [ "$status" -le 1 ] || fail_test "exit status $status: $line
$(cat err)"
  done < <(idem bench "$command" --help | sed -n '/^Examples:/,/^$/s/^  \(.*\)/\1/p')
done
[ "$examples" -ge 13 ] || fail_test "only $examples examples"
nothing_left
