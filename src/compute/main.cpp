// The program that `sluice` becomes for commands that compute: it loads LibTorch and libav.
#include "base/allocator.h"
#include "compute/commands.h"
#include "kernels/instructions.h"

#include <array>

int main(int argc, char** argv) {
  using namespace sluice::compute;
  sluice::keep_freed_memory();
  constexpr std::array commands = {
      sluice::cli::Command{"generate", "prompt to mp4 with sound", add_generate},
      sluice::cli::Command{"encode", "prompt to context or hidden states", add_encode},
      sluice::cli::Command{"plan", "what a request would need; reads headers only", add_plan},
      sluice::cli::Command{"quantize", "a checkpoint in fp8 or nf4", add_quantize},
      sluice::cli::Command{"recommend", "the profile for this machine, with flags to paste", add_recommend},
      sluice::cli::Command{"inspect", "what a made video holds", add_inspect_video},
  };
  return sluice::cli::run_program(commands, argc, argv, sluice::kernels::follow_cpu_variable);
}
