#!/usr/bin/env bash
# An unset variable, a zero, a stored escape: each must be told or made harmless, never taken for
# something else.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
export IDEM_STORE=sqlite:odd.db
expect_exit 0 idem key claim k

# "" is not "not given".
for words in 'key claim new --owner' 'key claim new --hash' 'key claim new --request-file' \
  'key claim new --store' 'key complete k --owner' 'key complete k --fence' \
  'key complete k --result-file' 'key resolve k --failed' 'key get k --store' 'config show --config' \
  'store migrate --to a --from'; do
  # shellcheck disable=SC2086
  expect_exit 2 idem $words ''
  expect_text err 'is empty'
done
expect_exit 2 idem run --key new --request '' -- true
expect_text err 'is empty'
expect_exit 3 idem key get new

for words in 'key list --limit 0' 'store sweep --limit 0'; do
  # shellcheck disable=SC2086
  expect_exit 2 idem $words
  expect_text err 'at least 1'
done

# What makes two runs the same is told by its name.
echo 1 >request
expect_exit 0 idem run --key file --request request -- echo one
echo 2 >request
expect_exit 12 idem run --key file --request request -- echo one
expect_text err 'another request than is in request'
expect_exit 12 idem run --key file -- echo one
expect_text err 'another command line'

# Stored bytes do not act on the terminal of whoever looks at them: C0, DEL, C1, and what reorders.
evil=$(printf 'a\033[2Jb\177c\302\233d\342\200\256e\rf\ng\th\007')
eval "$(idem key claim evil --export)"
expect_exit 0 idem key complete evil --result "$evil"
no_acting_bytes() {
  python3 - "$@" <<'PYTHON'
import sys, unicodedata
for name in sys.argv[1:]:
    text = open(name, "rb").read().decode()
    acting = [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf")]
    if acting: sys.exit(f"acts on the terminal: {acting} in {text!r}")
PYTHON
}
expect_exit 0 idem key get evil
expect_text out '\u{1b}[2J'
expect_text out '\u{7f}c\u{9b}d\u{202e}e\u{d}f\ng\th\u{7}'
no_acting_bytes out err
expect_exit 10 idem key claim evil
expect_text out '\u{1b}[2J'
no_acting_bytes out err
expect_exit 1 idem key complete evil --result other
no_acting_bytes out err
eval "$(idem key claim failing --export)"
expect_exit 0 idem key fail failing --kind final --reason "$evil"
expect_exit 13 idem key claim failing
no_acting_bytes out err
expect_exit 0 idem key list
no_acting_bytes out err
expect_exit 2 idem key get "$(printf 'a\033b')"
no_acting_bytes out err
# What was to be there is not: never the same as nothing.
for option in '--biz' '--tenant' '--request'; do
  expect_exit 2 idem key claim empty $option ''
  expect_text err 'is empty'
done
expect_exit 3 idem key get empty
eval "$(idem key claim empty --export)"
expect_exit 2 idem key complete empty --result ''
expect_exit 2 idem key resolve empty --result "$(cat not-there.json 2>/dev/null)"
expect_exit 0 idem key complete empty --result-file /dev/null
# The token in the environment is no slip of a setting.
IDEM_OWNER=$(printf '0%.0s' {1..32}) IDEM_FENCE=17 expect_exit 0 idem config show
# Only an exact copy is a replay.
printf '%s' "$evil" >evil.txt
expect_exit 0 idem run --key exact -- cat evil.txt
expect_exit 0 idem run --key exact -- cat evil.txt
cmp out evil.txt
expect_exit 10 idem key claim evil --json
[ "$(json out result)" = "$evil" ] || fail_test 'JSON holds other bytes'
