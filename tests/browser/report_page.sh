#!/usr/bin/env bash
# Makes a report of each kind and looks at them in a real browser. Exit 77 (skipped) without one.
#   report_page.sh IDEM [SCREENSHOTS]
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
shots=${2:+$(realpath "$2")}
# shellcheck source=tests/e2e/lib.sh
. "$here/../e2e/lib.sh"

chromium=$(command -v chromium || command -v chromium-browser) || { echo 'no chromium'; exit 77; }
command -v npm >/dev/null || { echo 'no npm'; exit 77; }
packages=$root/.cache/browser
if [ ! -d "$packages/node_modules/puppeteer-core" ] || [ "$here/package-lock.json" -nt "$packages/package-lock.json" ]; then
  mkdir -p "$packages"
  cp "$here/package.json" "$here/package-lock.json" "$packages/"
  (cd "$packages" && timeout 200 npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >&2
fi
cp "$here/report_page.mjs" "$packages/"

run=(--time 2s --rounds 6)
expect_exit 0 idem bench run --stores memory,sqlite --clients 2 --out run "${run[@]}"
expect_exit 0 idem bench choose --stores memory,sqlite --rate 20 --clients 2 --out choose "${run[@]}"
expect_exit 0 idem bench capacity --stores memory --clients 2 --slo 'p50<10s' --out capacity --time 2s --rounds 1
expect_exit 0 idem bench contention --stores memory,sqlite --clients 1,2 --out contention "${run[@]}"
if grep -q 'has no charts' run/report.html; then
  echo 'this build has no charts'
  exit 77
fi
mkdir shots
node "$packages/report_page.mjs" "$chromium" "${shots:-$work/shots}" \
  "$work"/{run,choose,capacity,contention}/report.html
