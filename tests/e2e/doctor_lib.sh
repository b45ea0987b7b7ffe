# shellcheck shell=bash
# Shared by the tests of `idem store doctor`, after lib.sh.

# found EXIT SEVERITY SETTING REMEDY URL [OPTION...]
cases=0
found() {
  local wanted=$1 severity=$2 setting=$3 remedy=$4 url=$5
  shift 5
  cases=$((cases + 1))
  expect_exit "$wanted" idem store doctor --store "$url" "$@"
  grep -qE "^$severity +$setting " out || fail_test "no '$severity $setting': $(cat out err)"
  [ -z "$remedy" ] || expect_text out "$remedy"
  expect_exit "$wanted" idem store doctor --store "$url" --json "$@"
  python3 - "$severity" "$setting" <<'PYTHON'
import json, re, sys
found = json.load(open("out"))["findings"]
hit = [f for f in found if f["severity"] == sys.argv[1] and re.fullmatch(sys.argv[2], f["setting"])]
if not hit: sys.exit(f"not in JSON: {found}")
if sys.argv[1] != "ok" and not all(f.get("remedy") for f in hit): sys.exit(f"no remedy: {hit}")
PYTHON
}
