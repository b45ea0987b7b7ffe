#!/usr/bin/env bash
# A mistyped path must not become an empty store, in which every key is free: whoever looks or ends
# what was begun makes no file, no table and no journal.
# shellcheck source=tests/e2e/lib.sh
services=$(realpath "$(dirname "$0")/../../scripts/services")
. "$(dirname "$0")/lib.sh"

token='--owner 00112233445566778899aabbccddeeff --fence 7'
commands=(
  'key get k' 'key list' 'key force-release k --dry-run' 'key force-release k --yes'
  'key resolve k --not-done' "key complete k $token" "key fail k $token" "key renew k $token"
  "key release k $token" 'store stats' 'store sweep' 'store sweep --dry-run' 'store schema'
)
: >empty.db
python3 -c "
import sqlite3
other = sqlite3.connect('other.db')
other.execute('CREATE TABLE theirs (a)')
other.commit()"
cp other.db other.before
for words in "${commands[@]}"; do
  for store in sqlite:missing.db "sqlite:///$work/missing.db" sqlite:empty.db sqlite:other.db \
    'tiered:?front=memory%3A&back=sqlite%3Amissing.db'; do
    case $words in
      'store schema') wanted=0 ;;
      *) wanted=4 ;;
    esac
    # shellcheck disable=SC2086
    expect_exit $wanted idem $words --store "$store"
    [ $wanted = 0 ] || grep -qE 'check the path|tables are not there' err || fail_test "no advice: $(cat err)"
    [ "$(ls)" = "bin
empty.db
err
other.before
other.db
out" ] || fail_test "idem $words --store $store made: $(ls)"
  done
done
cmp other.db other.before
[ ! -s empty.db ] || fail_test 'wrote into an empty file'
expect_exit 0 idem key claim k --store sqlite:made.db
expect_exit 0 idem key get k --store sqlite:made.db

# A database's tables, too; half of a store is none.
if idem stores | grep -q mysql; then
  export IDEM_SERVICES_DIR=$work/s
  trap '"$services" down >/dev/null || true; clean_up' EXIT
  expect_exit 0 "$services" up mariadb
  mysql=$(cut -d' ' -f2 out)
  port=${mysql##*:}
  sql() { mariadb --no-defaults -h 127.0.0.1 -P "${port%%/*}" -u idem -pidem -N idem -e "$1" | xargs; }
  looks() { # TABLES: nothing but these is there afterwards
    for words in "${commands[@]}"; do
      [ "$words" != 'store schema' ] || continue
      # shellcheck disable=SC2086
      expect_exit 4 idem $words --store "$mysql"
      expect_text err 'tables are not there'
      [ "$(sql 'SHOW TABLES')" = "$1" ] || fail_test "idem $words made: $(sql 'SHOW TABLES')"
    done
  }
  looks ''
  expect_exit 0 idem key claim k --store "$mysql"
  expect_exit 0 idem key get k --store "$mysql"
  sql 'DROP TABLE idempotent_record_meta'
  looks idempotent_record
fi
echo "${#commands[@]} commands made nothing"
