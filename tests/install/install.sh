#!/usr/bin/env bash
# Installs into a directory with a space in its name, moves it, and builds and runs a project that finds it there.
#   install.sh CMAKE BUILD_DIRECTORY BOOST_CMAKE_DIRECTORY COMPILER [COMPILER FLAGS]
set -euo pipefail
cmake=$1 build=$2 boost=$3 compiler=$4 flags=${5-}
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/install/lib.sh
. "$here/lib.sh"

"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log" || fail_test "$(cat "$work/install.log")"
mv "$work/first" "$work/moved to here"
configure() {
  "$cmake" -S "$here/consumer" -B "$work/$1" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" \
    -DCMAKE_PREFIX_PATH="$work/moved to here" -DBoost_DIR="$boost" "${@:2}" >"$work/$1.log" 2>&1
}

configure found || fail_test "$(cat "$work/found.log")"
"$cmake" --build "$work/found" >"$work/build.log" || fail_test "$(cat "$work/build.log")"
(cd "$work" && found/consumer) >"$work/out"
[ "$(cat "$work/out")" = $'charged ORD-9\ncharged ORD-9' ] || fail_test "it printed: $(cat "$work/out")"
"$work/found/consumer_test" >"$work/test.log" || fail_test "$(cat "$work/test.log")"
"$work/moved to here/bin/idem" version >/dev/null || fail_test 'the installed command does not run'

if configure missing -DCOMPONENT=nonesuch; then fail_test 'a component that is not there was found'; fi
grep -q "component 'nonesuch' of idem is not installed" "$work/missing.log" || fail_test "$(cat "$work/missing.log")"
if configure newer -DVERSION=0.2; then fail_test 'another minor version was taken'; fi
