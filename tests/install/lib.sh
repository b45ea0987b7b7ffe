# shellcheck shell=bash
# Shared by the tests beside it: a directory of their own, and how they fail.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail_test() {
  echo "FAILED: $*"
  exit 1
}
