#!/bin/bash
# every_path.sh PARITY_TEST DIR: the fixtures of the reference on each path of instructions that this processor
# can run, the best one left out: the test "parity" takes it.
set -euo pipefail
program=$1 folder=$2
mapfile -t paths < <("$program" --cpu-paths)
for path in "${paths[@]:0:${#paths[@]}-1}"; do
  echo "== SLUICE_CPU=$path"
  SLUICE_CPU=$path "$program" "$folder"
done
