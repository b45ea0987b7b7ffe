#!/usr/bin/env bash
# A project that adds idem as a subdirectory gets its libraries, and none of its programs and tests.
#   parent.sh CMAKE SOURCE_DIRECTORY BOOST_CMAKE_DIRECTORY COMPILER
set -euo pipefail
cmake=$1 source=$2 boost=$3 compiler=$4
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/install/lib.sh
. "$here/lib.sh"

"$cmake" -S "$here/parent" -B "$work/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DIDEM_SOURCE="$source" \
  -DBoost_DIR="$boost" >"$work/log" 2>&1 || fail_test "$(cat "$work/log")"
tests=$("$(dirname "$cmake")/ctest" --test-dir "$work/build" -N)
[[ $tests == *'Total Tests: 0'* ]] || fail_test "idem's tests are among the parent's: $tests"
"$cmake" --build "$work/build" --target help >"$work/targets"
grep -q 'libidem_testing\.a' "$work/targets" || fail_test 'no idem::testing to build'
if grep -E '(_tests?|bin/idem): ' "$work/targets"; then fail_test 'programs of idem came along'; fi
