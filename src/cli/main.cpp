// The program `sluice`: its own commands look at files and know bytes only, so that they start at once and
// fit into any limit.  For those that compute it becomes another program, which loads LibTorch.
#include "cli/commands.h"

#include <array>

int main(int argc, char** argv) {
  using namespace sluice::cli;
  constexpr std::array commands = {
      Command{"generate", "prompt to mp4 with sound", add_handed_over},
      Command{"encode", "prompt to context or hidden states", add_handed_over},
      Command{"plan", "what a request would need; reads headers only", add_handed_over},
      Command{"recommend", "the profile for this machine, with flags to paste", add_handed_over},
      Command{"quantize", "a checkpoint in fp8 or nf4, as shards in a folder", add_handed_over},
      Command{"inspect", "what a checkpoint or a made video holds", add_inspect},
      Command{"load", "read a checkpoint's tensors, into memory or one file; how fast, by which way",
              add_load},
      Command{"verify", "whether a checkpoint is whole; with --deep checksums, and values not finite",
              add_verify},
      Command{"bench load", "how fast this machine reads a checkpoint, by each way", add_bench_load},
  };
  return run_program(commands, argc, argv);
}
