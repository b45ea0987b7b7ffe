#!/usr/bin/env bash
# Every expectation of every scenario is looked at: with any one outcome altered, the file fails with
# that line's number and exit status 1.
#   altered_expectation.sh IDEM
set -euo pipefail
idem=$1
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checked=0
for file in *.jsonl; do
  # One line of each file: the last that expects an outcome.
  number=$(grep -n '"expect":{"outcome":"' "$file" | tail -n 1 | cut -d: -f1)
  [ -n "$number" ] || continue
  sed "${number}s/\"expect\":{\"outcome\":\"/&not_/" "$file" >"$work/altered.jsonl"
  status=0
  "$idem" script --quiet --store memory: "$work/altered.jsonl" 2>"$work/told" || status=$?
  if [ "$status" != 1 ] || ! grep -q "altered.jsonl:$number: outcome: expected" "$work/told"; then
    echo "$file:$number: altered, exit status $status:"
    cat "$work/told"
    exit 1
  fi
  checked=$((checked + 1))
done
echo "$checked altered files failed as they must"
[ "$checked" -gt 20 ]
