#!/usr/bin/env bash
# run.sh BUILD SECONDS: each fuzzer of BUILD for so long, one after the other.  What they learn stays in
# BUILD/corpus; an input that breaks a rule, takes 5 s or asks for too much memory ends the run and stays in
# BUILD/findings.
set -euo pipefail
build=$1 seconds=$2
here=$(cd "$(dirname "$0")" && pwd)

"$build/bin/fuzz_seeds" "$build/seeds"
mkdir -p "$build/findings" "$build/corpus/header" "$build/corpus/index"
# Inputs have at most 16 KiB: a single block of 32 MiB would be made of what they claim, not of what they hold.
limits=(-max_len=16384 -timeout=5 -rss_limit_mb=512 -malloc_limit_mb=32)
export ASAN_OPTIONS=quarantine_size_mb=64:${ASAN_OPTIONS:-}

fuzz() {
  local name=$1 log=$build/$1.log
  shift
  if ! "$build/bin/${name}_fuzzer" "${limits[@]}" -max_total_time="$seconds" -dict="$here/words.dict" -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="$build/findings/$name-" "$build/corpus/$name" "$build/seeds/$name" "$@" \
    >"$log" 2>&1; then
    cat "$log"
    echo "error: $name: an input breaks a rule"
    echo "  try: $build/bin/${name}_fuzzer $build/findings/$name-… repeats it; mend the parser and add a test"
    return 1
  fi
  echo "$name: $seconds s, $(awk '/number_of_executed_units/ { print $2 }' "$log") inputs, all answered by the rules"
}

fuzz header "$here/../fixtures/safetensors/reading"
fuzz index
