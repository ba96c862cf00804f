#!/usr/bin/env bash
# docs_test.sh SOURCE BIN DOCUMENT: runs the blocks of DOCUMENT that begin with "```sh run", in their order, in a new
# folder that looks like the root of the repository, with the programs of BIN on the PATH.
set -euo pipefail
source_folder=$1 bin=$2 document=$3

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/demo"
for shared in demo/model demo/lora demo/reference tests examples; do ln -s "$source_folder/$shared" "$folder/$shared"; done

awk '/^```/ { if (inside) print ""; inside = !inside && $0 == "```sh run"; next } inside' \
  "$source_folder/$document" >"$folder/commands"
[ -s "$folder/commands" ] || { echo "$document: no block that begins with \`\`\`sh run"; exit 1; }

cd "$folder"
PATH=$bin:$PATH bash -euxo pipefail commands
echo "$document: $(wc -l <commands) lines ran"
