#!/usr/bin/env bash
# What docs/operations.md tells people to type at night must work: each of its sh blocks is run, in
# a directory of its own, with a claim on pay-42 whose worker is gone.
#   operations.sh IDEM
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
page=$(cd "$OLDPWD" && realpath "$(dirname "$0")/../../docs/operations.md")

awk -v to="$work/block" '
  /^```sh$/ { n++; on = 1; next }
  /^```$/   { on = 0 }
  on        { print > (to n) }' "$page"
blocks=("$work"/block*)
[ "${#blocks[@]}" -ge 5 ] || fail_test "only ${#blocks[@]} blocks in $page"

export IDEM_STORE=sqlite:orders.db
for block in "${blocks[@]}"; do
  mkdir "$block.d"
  cd "$block.d"
  idem key claim pay-42 --lease 1ms >/dev/null 2>&1
  # The lease ends by the clock.
  until idem key list --stuck 2>/dev/null | grep -q pay-42; do :; done
  bash -euo pipefail "$block" >out 2>err || fail_test "this block fails: $(cat "$block" out err)"
done

cd "$work/block1.d"
expect_text out 'pay-42'
cd "$work"
idem key list --stuck --store sqlite:block2.d/orders.db >after 2>/dev/null
! grep -q pay-42 after || fail_test 'freed, but still stuck'
