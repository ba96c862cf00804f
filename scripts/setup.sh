# Sourced by test.sh and demo.sh: what a fresh machine lacks, then configure and build.  Every step first asks
# whether it is needed, so that a second run starts with the build at once.
#
#   install_packages          the Debian packages of scripts/packages.txt
#   find_libtorch             sets LIBTORCH, from the environment or by installing it into .venv/
#   configure PRESET [-D…]    CMake, when the build folder is new or the options differ
#   build PRESET TARGET…      incremental

readonly TORCH_RELEASE=2.13.0
readonly JOBS=2

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'error: %s\n  try: %s\n' "$1" "$2" >&2; exit 1; }

missing_packages() {
  local wanted have
  wanted=$(grep -v '^#' scripts/packages.txt | sort)
  have=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p' | sort -u)
  comm -23 <(printf '%s\n' "$wanted") <(printf '%s\n' "$have")
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "not a Debian system: the packages of scripts/packages.txt are taken to be there"
    return
  fi
  local missing as_root=()
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -eq 0 ] && return
  say "installing ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "installing packages needs root" "as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

is_libtorch() { [ -f "$1/include/ATen/ATen.h" ] && [ -f "$1/lib/libtorch_cpu.so" ]; }

# Prints the folder that the environment names, if any.
libtorch_of_environment() {
  if [ -n "${SLUICE_TORCH:-}" ]; then
    is_libtorch "$SLUICE_TORCH" || fail "SLUICE_TORCH=$SLUICE_TORCH is no LibTorch" "name a folder with include/ and lib/"
    printf '%s\n' "$SLUICE_TORCH"
    return
  fi
  local folder
  while IFS= read -r -d : folder; do
    if [ -n "$folder" ] && is_libtorch "$folder"; then printf '%s\n' "$folder"; return; fi
  done <<<"${CMAKE_PREFIX_PATH:-}:"
}

# PyTorch's wheel is a LibTorch; nothing of it runs as Python here.  Where pip's index has the CUDA build only (PyPI,
# for Linux), its CPU half still loads two small CUDA libraries; the rest, gigabytes, is for the half that is left out.
install_libtorch() {
  say "installing LibTorch $TORCH_RELEASE into .venv/"
  rm -rf .venv
  python3 -m venv .venv
  .venv/bin/pip install -q --disable-pip-version-check --no-compile --no-deps "torch==$TORCH_RELEASE"
  local toolkit
  toolkit=$(sed -n 's/^Requires-Dist: cuda-toolkit\[[^]]*\]\(==[0-9.]*\).*/\1/p' .venv/lib/python3*/site-packages/torch-*.dist-info/METADATA)
  if [ -n "$toolkit" ]; then
    .venv/bin/pip install -q --disable-pip-version-check --no-compile "cuda-toolkit[cudart,cupti]$toolkit"
  fi
  touch ".venv/torch-$TORCH_RELEASE"
}

find_libtorch() {
  LIBTORCH=$(libtorch_of_environment)
  LIBTORCH_OPTIONS=("-DSLUICE_TORCH=$LIBTORCH")
  [ -n "$LIBTORCH" ] && return
  [ -f ".venv/torch-$TORCH_RELEASE" ] || install_libtorch
  LIBTORCH=$(echo "$PWD"/.venv/lib/python3*/site-packages/torch)
  is_libtorch "$LIBTORCH" || fail "$LIBTORCH is incomplete" "rm -r .venv, and run again"
  LIBTORCH_OPTIONS=("-DSLUICE_TORCH=$LIBTORCH" -DSLUICE_CUDA=OFF)
}

# Warnings are errors where CI says so.  A build folder that is that strict stays so: no rebuild for going back.
strictness() {
  local cache=build/$1/CMakeCache.txt
  if [ -n "${CI:-}" ] || { [ -f "$cache" ] && grep -q '^SLUICE_WERROR:BOOL=ON' "$cache"; }; then
    echo -DSLUICE_WERROR=ON
  else
    echo -DSLUICE_WERROR=OFF
  fi
}

configure() {
  local preset=$1 stamp options
  shift
  stamp=build/$preset/configured-with
  options=$(printf '%s\n' "$@" "$(strictness "$preset")")
  if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$options" ]; then
    say "configuring $preset"
    # What was found in another LibTorch must not stay.
    cmake --preset "$preset" -U 'LibTorch_*' "$@" "$(strictness "$preset")"
    printf '%s\n' "$options" >"$stamp"
  fi
}

build() {
  local preset=$1
  shift
  say "building $preset: $*"
  cmake --build "build/$preset" -j "$JOBS" --target "$@"
}
