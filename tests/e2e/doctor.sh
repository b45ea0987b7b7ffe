#!/usr/bin/env bash
# A wrongly set server loses results without a word: each is named, with what to do.
# shellcheck source=tests/e2e/lib.sh
services=$(realpath "$(dirname "$0")/../../scripts/services")
here=$(realpath "$(dirname "$0")")
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/doctor_lib.sh
. "$here/doctor_lib.sh"
export IDEM_SERVICES_DIR=$work/s
trap '"$services" down >/dev/null || true; clean_up' EXIT

# SQLite
found 1 bad file 'first claim' sqlite:missing.db
[ ! -e missing.db ] || fail_test 'doctor made a store'
expect_exit 0 idem key claim k --store sqlite:good.db
cp good.db before.db
found 0 ok journal_mode '' sqlite:good.db
found 0 ok durability '' sqlite:good.db --min-durability power
found 0 ok disk '' sqlite:good.db
found 0 ok schema '' sqlite:good.db
expect_text out 'unique key'
cmp good.db before.db
[ "$(echo good.db*)" = good.db ] || fail_test "doctor left: $(echo good.db*)"
found 0 warn synchronous 'synchronous=normal' 'sqlite:good.db?synchronous=normal'
found 1 bad durability 'synchronous=normal' 'sqlite:good.db?synchronous=normal' --min-durability power
found 1 bad durability 'sqlite:name.db' sqlite::memory: --min-durability process
change() { python3 -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1], isolation_level=None) as db:
    for sql in sys.argv[2:]: db.execute(sql)' "$@"; }
cp good.db delete.db && change delete.db 'PRAGMA journal_mode=DELETE'
found 0 warn journal_mode 'journal_mode=WAL' sqlite:delete.db
cp good.db unique.db && change unique.db 'DROP INDEX uk_idem_key'
found 1 bad schema 'store schema' sqlite:unique.db
cp good.db column.db && change column.db 'ALTER TABLE idempotent_record DROP COLUMN flags'
found 1 bad schema 'store schema' sqlite:column.db
cp good.db index.db && change index.db 'DROP INDEX idx_idem_lapsed'
found 0 warn schema 'next claim' sqlite:index.db
cp good.db newer.db && change newer.db 'UPDATE idempotent_meta SET schema_version = 9'
found 1 bad schema 'store schema' sqlite:newer.db
cp good.db clock.db && change clock.db 'UPDATE idempotent_meta SET time_floor = time_floor + 90000000'
found 1 bad clock NTP sqlite:clock.db
cp good.db floor.db && change floor.db 'UPDATE idempotent_meta SET time_floor = -1'
found 1 bad clock backup sqlite:floor.db
echo 'no database at all, but text' >text.db
found 1 bad file 'another file' sqlite:text.db
found 0 ok records '' sqlite:good.db --records
expect_text out '1 read, all whole'
cp good.db damaged.db && change damaged.db 'UPDATE idempotent_record SET fence = version + 1'
found 0 ok schema '' sqlite:damaged.db
found 1 bad records backup sqlite:damaged.db --records
found 1 bad records 'without --records' sqlite:text.db --records
cp good.db wal.db
python3 - <<'PYTHON' # a reader with an old snapshot keeps the log from being written back
import os, sqlite3, subprocess
reader = sqlite3.connect("wal.db", isolation_level=None)
reader.execute("BEGIN"); reader.execute("SELECT count(*) FROM idempotent_record").fetchall()
writer = sqlite3.connect("wal.db", isolation_level=None)
writer.execute("CREATE TABLE theirs (a)")
while os.path.getsize("wal.db-wal") <= 70 << 20:
    writer.execute("INSERT INTO theirs VALUES (zeroblob(10000000))")
told = subprocess.run(["idem", "store", "doctor", "--store", "sqlite:wal.db"], capture_output=True, text=True)
assert "warn  wal file" in told.stdout and "wal_checkpoint" in told.stdout, told
PYTHON

# Redis
expect_exit 0 "$services" up redis replica cluster
url_of() { awk -v name="$1" '$1 == name { print $2 }' out; }
redis=$(url_of redis) replicated=$(url_of replica) cluster=$(url_of cluster)
port=${redis##*:}
expect_exit 0 idem key claim k --store "$redis"
found 0 ok records '' "$redis" --records
redis-cli -p "$port" set "$(redis-cli -p "$port" keys '*')" nonsense keepttl >/dev/null
found 1 bad records backup "$redis" --records
redis-cli -p "$port" flushall >/dev/null
# Not read is not damaged: nobody is told to delete anything.
redis-cli -p "$port" acl setuser blind on '>pw' '~*' +@all -scan >/dev/null
found 1 bad records 'look again' "redis://blind:pw@127.0.0.1:$port" --records
! grep -q 'delete that record' out || fail_test 'a record that was not read is to be deleted'
redis-cli -p "$port" acl deluser blind >/dev/null
set_to() { redis-cli -p "$port" CONFIG SET "$@" >/dev/null; }
found 0 ok maxmemory-policy '' "$redis"
found 0 ok appendfsync '' "$redis" --min-durability power
found 0 ok rights '' "$redis"
found 0 ok clock '' "$redis"
found 0 ok role '' "$replicated"
found 0 ok wait_replicas '' "$replicated"
found 0 ok maxmemory-policy '' "$cluster"
[ "$(grep -c '^ok *maxmemory-policy' <(idem store doctor --store "$cluster"))" = 3 ] || fail_test 'not every node'
for policy in allkeys-lru volatile-lru volatile-ttl; do
  set_to maxmemory-policy $policy
  found 1 bad maxmemory-policy 'CONFIG SET maxmemory-policy noeviction' "$redis"
  expect_text out $policy
done
set_to maxmemory-policy noeviction
set_to appendfsync everysec
found 0 warn appendfsync 'CONFIG SET appendfsync always' "$redis"
found 0 warn appendfsync 'CONFIG SET appendfsync always' "$redis" --min-durability process
found 1 bad appendfsync 'CONFIG SET appendfsync always' "$redis" --min-durability power
found 1 bad appendfsync 'CONFIG SET appendfsync always' "$redis?min_durability=power"
set_to appendonly no
found 0 warn appendonly 'CONFIG SET appendonly yes' "$redis"
found 1 bad appendonly 'CONFIG SET appendonly yes' "$redis" --min-durability process
set_to appendonly yes
replica=$(tr '\0' ' ' <"/proc/$(cat "$IDEM_SERVICES_DIR/replica/replica/pid")/cmdline" | grep -o '127.0.0.1:[0-9]*')
found 1 bad role 'REPLICAOF NO ONE' "redis://$replica"
found 1 bad wait_replicas 'fewer' "${replicated/wait_replicas=1/wait_replicas=2}"
found 1 bad mode 'redis+cluster://' "${cluster/redis+cluster/redis}"
redis-cli -p "$port" ACL SETUSER poor on '>pw' '~*' +@all -evalsha -eval >/dev/null
found 1 bad rights 'ACL SETUSER' "redis://poor:pw@127.0.0.1:$port"
redis-cli -p "$port" ACL SETUSER other on '>pw' '~other:*' +@all >/dev/null
found 1 bad rights 'ACL SETUSER' "redis://other:pw@127.0.0.1:$port"
redis-cli -p "$port" ACL SETUSER blind on '>pw' '~*' +@all -config >/dev/null
found 0 warn maxmemory-policy 'config|get' "redis://blind:pw@127.0.0.1:$port"
found 1 bad password 'user and password' "redis://poor:wrong@127.0.0.1:$port"
! grep -q wrong out || fail_test 'a password is told'
found 1 bad reach 'server runs' redis://127.0.0.1:1
[ "$(redis-cli -p "$port" dbsize)" = 0 ] || fail_test 'doctor left a key'

# Both tiers, each under its name; only the back has to last.
encoded() { python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1], safe=""))' "$1"; }
set_to maxmemory-policy allkeys-lru
found 1 bad 'front maxmemory-policy' noeviction "tiered:?front=$(encoded "$redis")&back=sqlite%3Agood.db"
found 0 ok 'back durability' '' 'tiered:?front=memory%3A&back=sqlite%3Agood.db' --min-durability power
found 1 bad 'url' '' 'nothing:x'
echo "$cases cases"
