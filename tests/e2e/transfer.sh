#!/usr/bin/env bash
# A move that loses a record, a lease or a fence makes something run twice.
#   transfer.sh IDEM [RECORDS [SOURCE]]    prints a line for each pair of stores
# SOURCE (sqlite, redis, mysql): only the moves from and into an export file of that store, and from
# it to each.
# shellcheck source=tests/e2e/lib.sh
services=$(realpath "$(dirname "$0")/../../scripts/services")
records=${2:-3000}
only=${3:-}
. "$(dirname "$0")/lib.sh"
export IDEM_SERVICES_DIR=$work/s
trap '"$services" down >/dev/null || true; clean_up' EXIT

# An export never takes the place of a store, or of anything that is not an export.
expect_exit 0 idem key claim vic --store sqlite:vic.db
expect_exit 5 idem store export --store sqlite:vic.db vic.db
expect_text err 'vic.db is there and is no export'
expect_exit 0 idem key get vic --store sqlite:vic.db
expect_exit 0 idem store export --store sqlite:vic.db vic.jsonl
expect_exit 0 idem store export --store sqlite:vic.db vic.jsonl
: >empty
expect_exit 0 idem store export --store sqlite:vic.db empty

# An attempt that was claimed under hold stays so wherever it moves: no sweep frees it.
expect_exit 0 idem key claim doubt --lease 1ms --on-lapsed hold --store sqlite:doubt.db
expect_exit 0 idem store migrate --from sqlite:doubt.db --to sqlite:moved.db --verify
expect_text out 'migrated into sqlite:moved.db'
expect_exit 0 idem store export --store sqlite:moved.db doubt.jsonl
expect_exit 0 idem store import --store sqlite:again.db doubt.jsonl --verify
expect_text out 'imported into sqlite:again.db'
for store in doubt moved again; do
  expect_exit 0 idem store sweep --stuck-after 1ms --store sqlite:$store.db
  expect_exit 0 idem key get doubt --store sqlite:$store.db
  expect_text out 'claims under policy hold, as this one was'
  expect_exit 15 idem key claim doubt --on-lapsed hold --store sqlite:$store.db
done

# Results of a megabyte are copied in small portions: their times do not age on the way.
python3 - <<'PYTHON'
import hashlib, json, time
now = int(time.time() * 1e6)
lines = ['{"format":"idem.export/1"}']
for i in range(150):
    lines.append(json.dumps({
        "key": f"large-{i}", "request_hash": "00" * 32, "owner": "11" * 16, "fence": now + i, "version": now + i,
        "attempt": 1, "create_time": now, "update_time": now, "expires_at": now + 3_600_000_000,
        "status": "success", "result": "x" * 1_000_000}))
body = "".join(line + "\n" for line in lines)
end = {"end": True, "records": 150, "sha256": hashlib.sha256(body.encode()).hexdigest()}
open("large.jsonl", "w").write(body + json.dumps(end, separators=(",", ":")) + "\n")
PYTHON
expect_exit 0 idem store import --store sqlite:large.db large.jsonl --verify
expect_text out '150/150'
expect_exit 0 idem store migrate --from sqlite:large.db --to sqlite:large2.db --verify
expect_text out '150/150'
# Killed in the middle, it leaves nothing lying about.
for after in 0.05 0.1 0.2 0.4; do
  timeout -s KILL $after idem store export --store sqlite:large.db killed.jsonl >/dev/null 2>&1 || true
  [ -z "$(find . -name 'killed.jsonl.*')" ] || fail_test "left: $(find . -name 'killed.jsonl.*')"
  rm -f killed.jsonl
done
# A file without lines is refused at once, however long it is.
expect_exit 2 timeout 20 idem store import --store sqlite:none.db /dev/zero
expect_text err '/dev/zero is no regular file'
expect_exit 2 timeout 20 idem store import --store sqlite:none.db - </dev/zero
expect_text err '-:1: not an export'
rm -f large*

# An export of every kind of record, made here: the format is what the documents say it is.
python3 - "$records" <<'PYTHON'
import hashlib, json, sys, time
count = int(sys.argv[1])
now = int(time.time() * 1e6)
lines = ['{"format":"idem.export/1"}']
for i in range(count):
    fence = now - 5_000_000 + i
    r = {"key": f"key-{i}", "request_hash": hashlib.sha256(b"%d" % i).hexdigest(),
         "owner": hashlib.md5(b"%d" % i).hexdigest(), "fence": fence, "version": fence + 1,
         "attempt": 1 + i % 5, "create_time": now - 60_000_000, "update_time": now - 5_000_000,
         "expires_at": now + 3_600_000_000 + i}
    if i % 7 == 0: r["biz"] = "pay"
    if i % 11 == 0: r["tenant"] = "ten\u00e4nt"
    kind = i % 6
    if kind == 0: r |= {"status": "processing", "lease_until": now + 1_800_000_000 + i}
    if kind == 1: r |= {"status": "processing", "lease_until": now - 1_000_000}
    if kind == 2: r |= {"status": "success", "result": f"paid {i} \u20ac\n"}
    if kind == 3: r |= {"status": "success", "result_hex": (bytes([i % 256, 255, 0]) * 40).hex()}
    if kind == 4: r |= {"status": "failed", "kind": "retryable", "retry_at": now + 900_000_000,
                        "result": "busy"}
    if kind == 5: r |= {"status": "failed", "kind": "final", "retry_at": now - 5_000_000}
    if i == 13: r["fence"], r["version"] = now + 600_000_000, now + 600_000_001  # a clock ahead
    lines.append(json.dumps(r))
body = "".join(line + "\n" for line in lines)
end = {"end": True, "records": count, "sha256": hashlib.sha256(body.encode()).hexdigest()}
open("first.jsonl", "w").write(body + json.dumps(end, separators=(",", ":")) + "\n")
PYTHON

# same FILE FILE: the records of two exports, but for what belongs to the store that wrote them.
same() {
  python3 - "$@" <<'PYTHON'
import json, sys
def records(name):
    out = {}
    for line in open(name):
        r = json.loads(line)
        if "key" not in r: continue
        for own in ("version", "create_time", "update_time"): del r[own]
        times = {t: r.pop(t, 0) for t in ("lease_until", "retry_at", "expires_at")}
        out[r.get("tenant"), r.get("biz"), r["key"]] = (r, times)
    return out
a, b = records(sys.argv[1]), records(sys.argv[2])
if a.keys() != b.keys(): sys.exit(f"{len(a)} and {len(b)} records")
for key, (r, times) in a.items():
    if r != b[key][0]: sys.exit(f"{r} is not {b[key][0]}")
    for name, at in times.items():
        other = b[key][1][name]
        live = at - a[key][1]["expires_at"] + 3_600_000_000 > 60_000_000  # over is over
        if live and abs(at - other) > 2_000_000: sys.exit(f"{key} {name}: {at} and {other}")
PYTHON
}
all_equal() { expect_text out "$records/$records"; }

# timed COMMAND...: succeeds, in `took` seconds.
timed() {
  local begin=$EPOCHREALTIME
  expect_exit 0 "$@"
  took=$(python3 -c "print('%.1f' % ($EPOCHREALTIME - $begin))")
}

# move PAIR COMMAND...: all of it, and all equal; a second time is nothing new.
move() {
  local pair=$1 first
  shift
  timed "$@" --verify
  first=$took
  expect_text out "written  $records"
  all_equal
  timed "$@" --verify
  expect_text out "already  $records"
  all_equal
  printf '%-16s %6s s, all %s equal; again %6s s, nothing written\n' "$pair" "$first" "$records" "$took"
  pairs=$((pairs + 1))
}

pairs=0

expect_exit 0 "$services" up redis
redis=$(cut -d' ' -f2 out)
# File into each store; each store into each other; each store into a file.
# What ends with the command is no place to move to.
for nowhere in memory: sqlite::memory:; do
  expect_exit 2 idem store import --store "$nowhere" first.jsonl
  expect_text err 'this store ends with this process'
  expect_exit 2 idem store migrate --from "$redis" --to "$nowhere"
  expect_exit 2 idem key claim pay-1 --store "$nowhere"
done
declare -A urls=([sqlite]=sqlite:a.db [redis]="$redis?prefix=a:")
mysql=
if idem stores | grep -q mysql; then
  expect_exit 0 "$services" up mariadb
  mysql=$(cut -d' ' -f2 out)
  urls[mysql]="$mysql?table=a"
fi
for kind in ${only:-${!urls[*]}}; do
  move "file -> $kind" idem store import --store "${urls[$kind]}" first.jsonl
  timed idem store export --store "${urls[$kind]}" "$kind.jsonl"
  same first.jsonl "$kind.jsonl"
  printf '%-16s %6s s, all %s equal\n' "$kind -> file" "$took" "$records"
  pairs=$((pairs + 1))
  for to in "sqlite:from-$kind.db" "$redis?prefix=from-$kind:" ${mysql:+"$mysql?table=from_$kind"}; do
    move "$kind -> ${to%%:*}" idem store migrate --from "${urls[$kind]}" --to "$to"
    expect_exit 0 idem store export --store "$to" moved.jsonl
    same first.jsonl moved.jsonl
  done
done
[ -z "$only" ] || exit 0
# Through a pipe, too; and the digest is that of the lines before it.
idem store export --store sqlite:a.db 2>/dev/null | idem store import --store sqlite:piped.db - >out 2>err
expect_text out "written  $records"
[ "$(head -n -1 sqlite.jsonl | sha256sum | cut -d' ' -f1)" = \
  "$(tail -n 1 sqlite.jsonl | python3 -c 'import json,sys; print(json.load(sys.stdin)["sha256"])')" ] ||
  fail_test 'the digest is not that of the lines'

# The owner goes on with its lease at the new place, a stranger does not, duplicates get the result.
owner=$(printf 6 | md5sum | cut -d' ' -f1)
fence=$(grep '"key":"key-6"' sqlite.jsonl | python3 -c 'import json,sys; print(json.loads(sys.stdin.readline())["fence"])')
store="$redis?prefix=from-sqlite:"
expect_exit 17 idem key complete key-6 --owner "$owner" --fence $((fence - 1)) --store "$store" --result x
expect_exit 0 idem key renew key-6 --owner "$owner" --fence "$fence" --store "$store" --lease 40m
expect_exit 0 idem key complete key-6 --owner "$owner" --fence "$fence" --store "$store" --result finished
expect_exit 10 idem key claim key-6 --request 6 --store "$store"
expect_text out finished
expect_exit 10 idem key claim key-8 --request 8 --store "$store"
expect_text out 'paid 8'
expect_exit 12 idem key claim key-8 --request other --store "$store"
expect_exit 0 idem key claim key-13 --request 13 --store "$store"
expect_text out takeover

# What differs is told, and is not overwritten.
expect_exit 1 idem store migrate --from sqlite:a.db --to "$store" --verify
expect_text err "'key-6': success instead of processing"
expect_text out "$((records - 2))/$records"
expect_exit 10 idem key claim key-6 --request 6 --store "$store"
expect_exit 1 idem store migrate --from sqlite:a.db --to "$store" --json
[ "$(json out refused)" = 2 ] || fail_test "not refused: $(cat out)"

# A file that was cut, changed or lengthened is refused before anything is written.
refuse() {
  expect_exit 2 idem store import --store sqlite:refused.db "$1"
  expect_text err "$1:$2"
  [ ! -e refused.db ] || fail_test "wrote something of $1"
}
head -n 100 first.jsonl >cut.jsonl
refuse cut.jsonl '101: the end is missing'
sed '50s/key-48/key-x8/' first.jsonl >changed.jsonl
refuse changed.jsonl "$((records + 2)): count or digest"
sed '50d' first.jsonl >short.jsonl
refuse short.jsonl "$((records + 1)): count or digest"
cat first.jsonl first.jsonl >twice.jsonl
refuse twice.jsonl "$((records + 3)): something follows"
for fault in 's/"attempt": *[0-9]*/"attempt":0/' 's/"fence": *[0-9]*/"fence":-5/' \
  's/"status": *"[a-z]*"/"status":"done"/' 's/"owner": *"./"owner":"/' 's/"key":/"kez":/' \
  's/"key": *"key/"key":"\\u0000/' 's/"expires_at": *[0-9]*/"expires_at":1/'; do
  sed "10$fault" first.jsonl >fault.jsonl
  ! cmp -s fault.jsonl first.jsonl || fail_test "changed nothing: $fault"
  refuse fault.jsonl '10: '
done
echo '{}' >other.jsonl
refuse other.jsonl '1: not an export'
expect_exit 2 idem store migrate --from sqlite:a.db --to sqlite:a.db
expect_exit 4 idem store migrate --from sqlite:missing.db --to sqlite:new.db
[ -z "$(find . -name new.db -o -name missing.db)" ] || fail_test 'made a store for nothing'
expect_exit 4 idem store export --store sqlite:a.db /dev/full/x
echo "$pairs pairs"
