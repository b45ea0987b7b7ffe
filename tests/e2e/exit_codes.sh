#!/usr/bin/env bash
# Scripts act on the exit status alone: a wrong one runs a payment twice or never.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
export IDEM_STORE=sqlite:codes.db

claim() { idem key claim "$@" --export; }

expect_exit 0 idem key claim fresh
echo '{"op":"claim","key":"k","expect":{"outcome":"replay"}}' >no.jsonl
expect_exit 1 idem script no.jsonl
expect_text err 'no.jsonl:1: outcome: expected "replay", is "claimed"'
expect_exit 2 idem
expect_exit 2 idem key claim k --lease 30
expect_exit 2 idem key claim "$(printf '%0129d' 0)"
expect_exit 3 idem key get nothing
expect_exit 3 idem key force-release nothing --yes
expect_exit 4 idem key get k --store sqlite:no/such/directory.db
expect_exit 5 idem key force-release fresh --yes
expect_text err 'is live'
expect_exit 5 idem key force-release fresh --force </dev/null
expect_text err '--yes'
expect_exit 0 idem key force-release fresh --force --yes --dry-run
expect_exit 0 idem key get fresh
expect_exit 0 idem key force-release fresh --force --yes
expect_exit 3 idem key get fresh

eval "$(claim paid --request a)"
expect_exit 11 idem key claim paid --request a
expect_exit 12 idem key claim paid --request b
expect_exit 0 idem key complete paid --result R
expect_exit 10 idem key claim paid --request a
expect_exit 12 idem key claim paid --request b
expect_exit 1 idem key complete paid --result other
expect_exit 1 idem key release paid
expect_exit 5 idem key force-release paid --yes
expect_exit 5 idem key resolve paid --not-done

eval "$(claim bad)"
expect_exit 0 idem key fail bad --kind final --reason no
expect_exit 13 idem key claim bad
eval "$(claim later)"
expect_exit 0 idem key fail later --retry-after 1h
expect_exit 14 idem key claim later

# A lease of a millisecond is over by the time the next process asks.
eval "$(claim held --lease 1ms --on-lapsed hold)"
expect_exit 15 idem key claim held --on-lapsed hold
eval "$(claim capped --lease 1ms --max-attempts 1)"
expect_exit 16 idem key claim capped --max-attempts 1
eval "$(claim taken --lease 1ms)"
expect_exit 0 idem key claim taken
expect_text out takeover
expect_exit 17 idem key complete taken --result late
expect_exit 17 idem key renew taken
expect_exit 17 idem key fail taken

eval "$(claim gone)"
expect_exit 0 idem key release gone
expect_exit 3 idem key complete gone --result R

# For eval: a claim that was not given leaves its own status.
status=0
eval "$(claim paid --request a)" || status=$?
[ "$status" = 10 ] || fail_test "eval of a claim left $status"
