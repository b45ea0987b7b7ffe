#!/usr/bin/env bash
# A mistyped path must not become an empty store, in which every key is free: whoever looks or ends
# what was begun makes no file, no table and no journal.
# shellcheck source=tests/e2e/lib.sh
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
echo "${#commands[@]} commands made nothing"
