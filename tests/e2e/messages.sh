#!/usr/bin/env bash
# What the command says: suggestions, one JSON document, no escapes, no passwords.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

expect_exit 2 idem
expect_text err 'Examples:'
[ "$(grep -c '^  idem ' err)" = 3 ] || fail_test 'not three examples'
expect_exit 0 idem --help
expect_exit 0 idem --version
expect_text out 'idem 0.'

expect_exit 2 idem stroes
expect_text err "did you mean 'stores'?"
expect_exit 2 idem key clam k
expect_text err "did you mean 'claim'?"
expect_exit 2 idem key claim k --leese 3s
expect_text err "did you mean '--lease'?"
expect_exit 2 idem key get k --store sqlte:a.db
expect_text err "did you mean 'sqlite"
expect_exit 2 idem key get k --store 'sqlite:a.db?synchronus=full'
expect_text err "did you mean 'synchronous'?"
expect_exit 2 idem key get k
expect_text err 'idem stores'
expect_exit 2 idem key
expect_exit 2 idem key claim k --lease 30
printf '{"op":"clam","key":"k"}\n' >typo.jsonl
expect_exit 2 idem script typo.jsonl
expect_text err "typo.jsonl:1: unknown op 'clam', did you mean 'claim'?"
printf '# comment\n\n{"op":"claim","key":"k","expct":{}}\n' >typo.jsonl
expect_exit 2 idem script typo.jsonl
expect_text err "typo.jsonl:3: unknown member 'expct', did you mean 'expect'?"

# A port that is taken: said so, and not taken for a store that does not answer.
serve=(idem serve --upstream http://127.0.0.1:1 --store memory:)
mkfifo listening
"${serve[@]}" --listen 127.0.0.1:0 >listening 2>served.err &
read -r -t 60 line <listening || fail_test "$(cat served.err)"
taken=${line#listening on }
taken=${taken%%,*}
expect_exit 2 "${serve[@]}" --listen "$taken"
expect_text err "cannot listen on $taken"
expect_text err '--listen 127.0.0.1:0 takes any free port'

# Where a value comes from is the option that was typed.
expect_exit 2 idem serve --upstream nonsense --store memory:
expect_text err '--upstream: error: '
expect_exit 2 idem serve --upstream http://127.0.0.1:1 --store nonsense:x
expect_text err '--store: error: '
expect_exit 0 idem config show --origin --store memory:
expect_text out '# flag --store'
! grep -q -- '--set store' out || fail_test 'an option that nobody typed'
printf 'idempotency:\n  store: nonsense:x\n  watt: 5s\n' >two.yml
expect_exit 2 idem config check --config two.yml
expect_text err "unknown store scheme 'nonsense:'"
expect_text err "unknown key 'watt'"

# A claim that is not given says so to whoever types it, also when the shell takes the output.
expect_exit 0 idem key claim tried --store sqlite:tried.db --request a
expect_exit 11 idem key claim tried --store sqlite:tried.db --request a --export
expect_text out '(exit 11)'
[ "$(wc -l <err)" = 1 ] || fail_test "not one line: $(cat err)"
expect_text err 'not claimed: in progress tried'
expect_exit 12 idem key claim tried --store sqlite:tried.db --request b
expect_text err 'try:  another request came with this key first'
expect_exit 0 idem key claim lost --biz pay --store sqlite:tried.db --lease 1ms --on-lapsed hold
expect_exit 15 idem key claim lost --biz pay --store sqlite:tried.db --on-lapsed hold
expect_text err 'idem key resolve lost --biz pay --result'
expect_exit 0 idem key claim last --store sqlite:tried.db --lease 1ms --max-attempts 1
expect_exit 16 idem key claim last --store sqlite:tried.db --max-attempts 1
expect_text err 'no attempt is left'
expect_exit 1 idem store doctor --store sqlite:missing.db
expect_text out 'there is no store'
! grep -q 'open files' out || fail_test 'a missing file is no limit'

# Counts of things are numbers, counts of bytes have units.
expect_exit 0 idem config show
grep -Eq '^serve.connections_max: [0-9]+$' out || fail_test "$(grep connections out)"
grep -Eq '^serve.header_bytes_max: [0-9]+KiB$' out || fail_test "$(grep header_bytes out)"

# One JSON document on standard output, whatever happens.
export IDEM_STORE=sqlite:messages.db
check_json() {
  local wanted=$1
  shift
  expect_exit "$wanted" "$@" --json
  [ "$(json out schema)" = idem.cli/1 ] || fail_test "no schema: $*"
}
check_json 0 idem key claim k
owner=$(json out owner) fence=$(json out fence)
check_json 11 idem key claim k
check_json 0 idem key get k
check_json 0 idem key list
check_json 0 idem key renew k --owner "$owner" --fence "$fence"
check_json 0 idem key complete k --owner "$owner" --fence "$fence" --result R
[ "$(json out outcome)" = completed ] || fail_test 'claimed here, completed there'
check_json 10 idem key claim k
[ "$(json out result)" = R ] || fail_test 'no result'
check_json 3 idem key get nothing
check_json 0 idem store stats
check_json 0 idem store schema
check_json 0 idem store sweep
check_json 0 idem stores
check_json 0 idem version
check_json 0 idem --version
[ "$(json out version)" = "$(idem --version | sed 's/^idem //')" ] || fail_test 'two versions'
check_json 0 idem completion bash
check_json 2 idem key get
[ "$(json out error)" = usage ] || fail_test 'an error without its word'
check_json 2 idem bnch
check_json 4 idem key get k --store sqlite:no/such/place.db
[ "$(json out exit)" = 4 ] || fail_test 'an error without its exit status'
echo '{"op":"claim","key":"k","expect":{"outcome":"claimed"}}' >one.jsonl
check_json 0 idem script one.jsonl
expect_exit 0 idem run --key j --json -- echo hello
[ "$(json out stdout)" = hello ] || fail_test 'no output in JSON'

# Passwords: in no output, not even of URLs that cannot be parsed.
for url in 'redis://user:S3NTINEL@127.0.0.1:1/0' 'mysql://user:S3NTINEL@127.0.0.1:1/db' \
  'redis://:S3NTINEL/x@h:6379' 'nothing://a:S3NTINEL@h' 'S3NTINEL'; do
  for form in '' --json; do
    status=0
    # shellcheck disable=SC2086
    idem key get k --store "$url" $form >out 2>err || status=$?
    [ "$status" != 0 ] || fail_test "worked: $url"
    ! grep -q S3NTINEL out err || fail_test "password told: $(cat out err)"
  done
done

# No escape, no carriage return, when piped.
for words in 'key get k' 'key list' 'stores' '--help' 'store stats' 'nonsense'; do
  # shellcheck disable=SC2086
  idem $words >out 2>err || true
  ! grep -q $'[\033\r]' out err || fail_test "an escape in: $words"
done
