# shellcheck shell=bash
# Shared by the tests beside it. Each is run as: test.sh IDEM, in an empty directory of its own,
# with no store named and a state directory that is private, too.
set -euo pipefail

idem=$(realpath "$1")
work=$(mktemp -d)
clean_up() {
  jobs -p | xargs -r kill -9 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
cd "$work"
mkdir bin
ln -s "$idem" bin/idem
export PATH=$work/bin:$PATH XDG_STATE_HOME=$work/state
unset IDEM_STORE IDEM_OWNER IDEM_FENCE

fail_test() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# expect_exit CODE COMMAND...: output goes to $work/out and $work/err.
expect_exit() {
  local wanted=$1 status=0
  shift
  "$@" >"$work/out" 2>"$work/err" || status=$?
  [ "$status" = "$wanted" ] || fail_test "exit status $status instead of $wanted: $*
$(cat "$work/out" "$work/err")"
}

# expect_text FILE TEXT
expect_text() { grep -qF -- "$2" "$1" || fail_test "'$2' is not in: $(cat "$1")"; }

# json FILE KEY...: the value in the one JSON document of the file; fails if it is not one.
json() {
  python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]: value = value[int(key) if isinstance(value, list) else key]
print(value)' "$@"
}
