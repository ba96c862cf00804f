#!/usr/bin/env bash
# ./test.sh            set up what is missing, build everything, run every test
# ./test.sh asan|tsan  the tests of the layers without LibTorch, under the sanitizers (more in CONTRIBUTING.md)
# ./test.sh debug      every test in a debug build
set -euo pipefail
cd "$(dirname "$0")"
source scripts/setup.sh

# Two tests at a time, so one compute thread each; tests of threading set their own.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
run_tests() { ctest --test-dir "build/$1" -j "$JOBS" --output-on-failure "${@:2}"; }

# libsluice-bytes without LibTorch, installed, and a program of somebody else against it.
check_bytes_alone() {
  local prefix=$PWD/build/bytes/prefix example=build/bytes/list_tensors
  configure bytes
  build bytes sluice_bytes
  cmake --install build/bytes --prefix "$prefix" >/dev/null
  say "building examples/list_tensors against it"
  [ -f "$example/build.ninja" ] || cmake -S examples/list_tensors -B "$example" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
  cmake --build "$example"
  "$example/list_tensors" demo/model/ltx-2.3-demo.safetensors | tail -n 3
}

check_everything() {
  find_libtorch
  configure "$1" "${LIBTORCH_OPTIONS[@]}"
  build "$1" all
  say "testing $1"
  run_tests "$1"
}

check_sanitized() {
  configure "$1" -DSLUICE_TORCH_LAYERS=OFF
  build "$1" all
  say "testing $1"
  run_tests "$1"
}

install_packages
case "${1:-release}" in
  release)
    check_bytes_alone
    check_everything release
    ;;
  debug) check_everything debug ;;
  asan | tsan) check_sanitized "$1" ;;
  *) fail "'$1' is no preset" "./test.sh, or one of release, debug, asan, tsan" ;;
esac
