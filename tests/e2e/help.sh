#!/usr/bin/env bash
# Examples in help that do not run, and completion that forgets a command, are lies.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# leaves [WORDS]: every command that does something.
leaves() {
  local sub subs
  # shellcheck disable=SC2086
  subs=$(idem $1 --help | sed -n '/^Subcommands:/,$p' | sed -n 's/^  \([a-z-]\+\) .*/\1/p')
  if [ -z "$subs" ]; then
    printf '%s\n' "$1"
  else
    for sub in $subs; do leaves "$1 $sub"; done
  fi
}

idem completion bash >completion.bash
idem completion zsh >completion.zsh
idem completion fish >completion.fish
bash -n completion.bash
# shellcheck disable=SC1091
. ./completion.bash

mapfile -t commands < <(leaves '')
[ "${#commands[@]}" -ge 17 ] || fail_test "only ${#commands[@]} commands: ${commands[*]}"
examples=0
for command in "${commands[@]}"; do
  # shellcheck disable=SC2086
  idem $command --help >help
  grep -q '^Examples:' help || fail_test "no example: $command"
  # Every option tells its default (help and version have none).
  python3 - "$command" <<'PYTHON'
import re, sys
text = open("help").read()
text = re.sub(r"\n {20,}", " ", text)
for line in text.splitlines():
    if re.match(r"  (-|--)[a-z]", line) and "--help" not in line and "--version" not in line:
        if "(default: " not in line and "(required)" not in line:
            sys.exit(f"no default in the help of{sys.argv[1]}: {line}")
PYTHON
  # Every example runs, in an empty directory; what an outcome is worth is the reader's to decide.
  [ "${command%% bench*}" = "$command" ] || continue # takes its time; see the benchmark's tests
  rm -rf example && mkdir example
  # Those who look need a store to look into.
  idem key claim seed --store sqlite:example/orders.db >/dev/null 2>&1
  while IFS= read -r line; do
    # A server runs until it is told to stop.
    [ "$command" != " serve" ] || line="timeout --preserve-status -s TERM 1 $line"
    [ "${line#*--watch}" = "$line" ] || line="$line --times 1"
    examples=$((examples + 1))
    status=0
    (cd example && bash -c "$line" >../out 2>../err) || status=$?
    case $status in
      0 | 3 | 1[0-7]) ;;
      *) fail_test "exit status $status: $line
$(cat err)" ;;
    esac
  done < <(sed -n '/^Examples:/,/^$/s/^  \(.*\)/\1/p' help)

  # Completion knows the command and each of its options.
  read -r -a words <<<"idem$command"
  COMP_WORDS=("${words[@]:0:${#words[@]}-1}" '') COMP_CWORD=$((${#words[@]} - 1)) COMPREPLY=()
  _idem
  [[ " ${COMPREPLY[*]} " == *" ${words[-1]} "* ]] || fail_test "bash does not complete:$command"
  COMP_WORDS=("${words[@]}" --) COMP_CWORD=${#words[@]} COMPREPLY=()
  _idem
  for option in $(grep -o '^  [-a-z,]*--[a-z-]*' help | grep -o -- '--[a-z-]*'); do
    [[ " ${COMPREPLY[*]} " == *" $option "* ]] || fail_test "bash does not complete:$command $option"
    grep -q -- "-l ${option#--}\$" completion.fish || fail_test "fish does not know $option"
  done
  grep -q -- " -a ${words[-1]}\$" completion.fish || fail_test "fish does not complete:$command"
  grep -q "'${words[*]}')" completion.zsh || fail_test "zsh does not know:$command"
done
echo "${#commands[@]} commands, $examples examples"
[ "$examples" -ge 17 ]
