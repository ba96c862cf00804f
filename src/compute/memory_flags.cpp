#include "compute/memory_flags.h"

#include "cli/parse_word.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace sluice::compute {
namespace {

using cli::parse_word;
using cli::Word;

constexpr std::int64_t kMostBlocks = 100'000;

std::int64_t parse_blocks(const std::string& text) {
  std::int64_t count = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count >= 0 && count <= kMostBlocks)
    return count;
  throw Error(ErrorKind::usage, fmt::format("--resident-blocks '{}' is no number of blocks", text),
              fmt::format("give a whole number from 0 to {}", kMostBlocks));
}

Bytes parse_size(const char* flag, const std::string& text) {
  const Bytes size = parse_bytes(text);
  if (size > 0) return size;
  throw Error(ErrorKind::usage, fmt::format("{} '{}' leaves nothing", flag, text),
              "give a size such as 8GiB");
}

}  // namespace

void MemoryFlags::add_to(CLI::App& command) {
  const char* group = "Memory";
  command
      .add_option("--stage-from", stage_from_,
                  "where weights are while a phase computes: auto, memory, disk, or device (with the CPU: "
                  "memory); results are the same")
      ->type_name("WORD")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--resident-blocks", resident_blocks_,
                  "of the blocks staged from disk, how many stay in memory (default: what fits)")
      ->type_name("N")
      ->group(group);
  command
      .add_option("--memory-limit", memory_limit_,
                  "for everything the run causes, page cache included: 10GiB (default: what is available)")
      ->type_name("SIZE")
      ->group(group);
  command
      .add_option("--attention-budget", attention_budget_,
                  "scratch of an attention: 16MiB (default: chosen); results are the same")
      ->type_name("SIZE")
      ->group(group);
  command
      .add_option("--decode", decode_,
                  "auto, stream or whole (the same frames), or tiled (blended tiles: changes the picture)")
      ->type_name("WORD")
      ->capture_default_str()
      ->group(group);
}

void MemoryFlags::apply(Request& request) const {
  request.stage_from = parse_word<StageFrom>(
      "--stage-from", stage_from_,
      std::array{Word<StageFrom>{"auto", StageFrom::automatic}, Word<StageFrom>{"memory", StageFrom::memory},
                 Word<StageFrom>{"disk", StageFrom::disk}, Word<StageFrom>{"device", StageFrom::device}});
  request.decode = parse_word<DecodeMode>(
      "--decode", decode_,
      std::array{Word<DecodeMode>{"auto", DecodeMode::automatic},
                 Word<DecodeMode>{"stream", DecodeMode::stream}, Word<DecodeMode>{"whole", DecodeMode::whole},
                 Word<DecodeMode>{"tiled", DecodeMode::tiled}});
  if (!memory_limit_.empty()) request.memory_limit = parse_size("--memory-limit", memory_limit_);
  if (!attention_budget_.empty())
    request.attention_budget = parse_size("--attention-budget", attention_budget_);
  if (resident_blocks_.empty()) return;
  request.resident_blocks = parse_blocks(resident_blocks_);
  if (request.stage_from == StageFrom::memory || request.stage_from == StageFrom::device) {
    throw Error(ErrorKind::usage,
                fmt::format("--resident-blocks {} and --stage-from {} contradict each other",
                            *request.resident_blocks, stage_from_),
                "with --stage-from disk a number of blocks stays, with memory all of them do");
  }
}

}  // namespace sluice::compute
