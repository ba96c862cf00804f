#!/usr/bin/env bash
# Three clips with sound from the small model in demo/model, into demo/out/.  Every command is printed before it
# runs: copy one, change the prompt or the seed, and run it yourself.
set -euo pipefail
cd "$(dirname "$0")"
source scripts/setup.sh

install_packages
find_libtorch
configure release "${LIBTORCH_OPTIONS[@]}"
build release sluice contact_sheet

# Prints the command as one would type it, then runs it.
run() {
  local word line='$'
  for word in "$@"; do
    case $word in
      *' '*) line+=" \"$word\"" ;;
      *) line+=" $word" ;;
    esac
  done
  printf '\n%s\n' "$line"
  "$@"
}

sluice=build/release/bin/sluice
model=(--model demo/model/ltx-2.3-demo.safetensors --text-encoder demo/model/text_encoder --variant distilled)
clip=(--width 64 --height 64 --frames 17)  # what the model was trained for
out=demo/out
mkdir -p "$out"
begin=$SECONDS

say "what a request needs, from the file's header alone"
run $sluice plan "${model[@]}" "${clip[@]}" --prompt "a red circle moves right on a navy background, high tone"

say "prompts to clips with sound"
run $sluice generate --quiet --overwrite "${model[@]}" "${clip[@]}" --seed 42 \
  --prompt "a red circle moves right on a navy background, high tone" \
  -o $out/red.mp4 --frames-dir $out/frames-red --wav $out/red.wav
run $sluice generate --quiet --overwrite "${model[@]}" "${clip[@]}" --seed 7 \
  --prompt "a yellow circle moves up on a black background, middle tone" \
  -o $out/yellow.mp4 --frames-dir $out/frames-yellow
run $sluice generate --quiet --overwrite "${model[@]}" "${clip[@]}" --seed 3 \
  --prompt "a magenta circle moves left on a grey background, low tone" \
  -o $out/magenta.mp4 --frames-dir $out/frames-magenta

say "all of it in one picture: a row for each clip, every second frame"
run build/release/bin/contact_sheet --every 2 --scale 2 -o $out/sheet.png \
  $out/frames-red $out/frames-yellow $out/frames-magenta
rm -r $out/frames-red $out/frames-yellow $out/frames-magenta

printf '\nmade in %d s:\n' $((SECONDS - begin))
ls -l $out
