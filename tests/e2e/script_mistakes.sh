#!/usr/bin/env bash
# A scenario with a mistake in it tests nothing: it must say so, with its line, and never pass.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# mistake TEXT LINE: the file with this line after a good one is refused at line 2 with TEXT.
mistakes=0
mistake() {
  mistakes=$((mistakes + 1))
  printf '%s\n%s\n' '{"op":"claim","key":"k0","expect":{"owner":{"save":"owner"},"attempt":{"save":"n"}}}' \
    "$2" >mistake.jsonl
  expect_exit 2 idem script --quiet mistake.jsonl
  expect_text err "mistake.jsonl:2: "
  expect_text err "$1"
  ! grep -qE 'json\.exception|bad_alloc|std::|length_error' err || fail_test "raw words: $(cat err)"
}

claim='{"op":"claim","key":"k1","expect":'
for rule in gt ge lt le; do
  mistake "'\$$rule' compares numbers" "$claim{\"outcome\":{\"\$$rule\":1}}}"
  mistake "'\$$rule' compares numbers" "$claim{\"fence\":{\"\$$rule\":\"owner\"}}}"
  mistake "'\$$rule' compares numbers" "$claim{\"owner\":{\"\$$rule\":\"owner\"}}}"
  mistake "a number or the name" "$claim{\"fence\":{\"\$$rule\":true}}}"
  mistake "a number or the name" "$claim{\"fence\":{\"\$$rule\":null}}}"
  mistake "nothing was saved as 'nowhere'" "$claim{\"fence\":{\"\$$rule\":\"nowhere\"}}}"
done
mistake "'\$absent' in 'expect' must be true or false" "$claim{\"x\":{\"\$absent\":\"no\"}}}"
mistake "'save' in 'expect' must be a name" "$claim{\"fence\":{\"save\":1}}}"
mistake "'\$same' in 'expect' must be a name" "$claim{\"fence\":{\"\$same\":1}}}"
mistake "'\$pattern' in 'expect' must be a whole number" "$claim{\"fence\":{\"\$pattern\":\"9\"}}}"
mistake "must be at most" "$claim{\"fence\":{\"\$pattern\":99999999999999}}}"
mistake "unknown rule '\$gtt'" "$claim{\"fence\":{\"\$gtt\":1}}}"
mistake "mixes rules and members" "$claim{\"outcome\":\"claimed\",\"\$gt\":1}}"
# Also behind a difference.
mistake "unknown rule '\$gtt'" "$claim{\"outcome\":\"replay\",\"fence\":{\"\$gtt\":1}}}"
mistake "'expect' must be an object" "${claim}1}"
mistake "must be at most" '{"op":"complete","key":"k0","result_size":18446744073709551615}'
mistake "must be at most" '{"op":"complete","key":"k0","result_size":1099511627776}'
mistake "must be at most" '{"op":"claim","key_size":1099511627776}'
mistake "each of 'items' must be an object, not 1" '{"op":"claim_many","items":[1]}'
mistake "each of 'items' must be an object" '{"op":"complete_many","items":[{"key":"k0"},"k1"]}'
mistake "'items' must be an array" '{"op":"claim_many","items":{}}'
mistake '"key" stands twice' '{"op":"claim","key":"k1","key":"k2"}'
mistake '"outcome" stands twice' "$claim{\"outcome\":\"claimed\",\"outcome\":\"replay\"}}"
mistake '"key" stands twice' '{"op":"claim_many","items":[{"key":"k1","key":"k2"}]}'
mistake "'result' and 'result_hex'" '{"op":"complete","key":"k0","result":"R","result_hex":"52"}'
mistake "'result_hex' and 'result_size'" '{"op":"complete","key":"k0","result_size":1,"result_hex":"52"}'
mistake "'facts' and 'key'" '{"op":"claim","key":"k1","facts":["PAY"]}'
mistake "'hash' and 'request'" '{"op":"claim","key":"k1","hash":"00","request":"a"}'
mistake "'status' and 'state'" '{"op":"list","status":"failed","state":"failed"}'
mistake "texts and whole numbers" '{"op":"claim","facts":["PAY",1.5]}'
mistake "not JSON" '{"op":"claim"'
mistake "must be one JSON object" '[1]'
mistake "'key' must be a text" '{"op":"claim","key":1}'
mistake "a whole number" '{"op":"sweep","limit":-1}'
echo "$mistakes mistakes told"

# A difference stays a difference (exit 1), however much later lines lean on what its line saves.
cat >leans.jsonl <<'JSON'
{"op":"claim","key":"k1","expect":{"outcome":"replay","fence":{"save":"f"},"result":{"save":"r"}}}
{"op":"claim","key":"k1","expect":{"fence":{"$same":"f"}}}
{"op":"claim","key":"k1","expect":{"fence":{"$gt":"r"}}}
JSON
expect_exit 1 idem script --quiet leans.jsonl
expect_text err 'leans.jsonl:1: outcome: expected "replay", is "claimed"'
expect_text err 'leans.jsonl:3: fence'
! grep -q 'leans.jsonl:2' err || fail_test "saved, but not found: $(cat err)"

# Nested beyond what may be compared by recursion.
python3 -c 'n = 50000; print("{\"op\":\"claim\",\"expect\":" + "{\"a\":" * n + "1" + "}" * (n + 1))' >deep.jsonl
expect_exit 2 idem script deep.jsonl
expect_text err 'deep.jsonl:1: nested deeper'

# Interrupted, or its reader gone: the store that was made for it goes, too.
printf '{"op":"claim","key":"k1"}\n{"op":"advance","by":"1s"}\n{"op":"claim","key":"k2"}\n' >long.jsonl
mkfifo answers
idem script --real-time --store sqlite:long.db long.jsonl >answers 2>err &
script=$!
exec 3<answers
read -r first <&3
kill -TERM "$script"
rest=$(cat <&3)
status=0
wait "$script" || status=$?
exec 3<&-
[ "$status" = 143 ] || fail_test "an interrupted script ended with $status: $first $(cat err)"
! grep -q '"k2"\|fresh' <<<"$rest" || fail_test "it went on: $rest"
[ -z "$(find . -name 'long.db*')" ] || fail_test "left behind: $(ls long.db*)"
idem script --real-time --store sqlite:long.db long.jsonl 2>err | head -1 >out || true
[ -z "$(find . -name 'long.db*')" ] || fail_test "left behind: $(ls long.db*)"
