#pragma once
// What a stream over time takes in memory, without computing it: its convolutions are gone through with
// blocks of bytes for tensors, taken and given back in the order in which time_conv.h and time_stream.h do
// it. decode_memory.h and encode_memory.h put the stages in a row.

#include "kernels/block_list.h"
#include "models/ltx2/video_vae/conv_memory.h"
#include "models/ltx2/video_vae/time_conv.h"

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace sluice::ltx2 {

// Blocks as the memory pool of a run places them: what lies between blocks that stay is touched memory too.
class Arena {
 public:
  struct Block {
    Bytes offset = 0;
    bool taken = false;  // not for no bytes
  };

  Block take(std::int64_t bytes);
  void give_back(Block& block);
  void brief(std::int64_t bytes);  // taken and given back

  std::int64_t peak() const { return static_cast<std::int64_t>(peak_); }
  std::int64_t extent() const { return static_cast<std::int64_t>(blocks_.extent()); }

 private:
  kernels::BlockList blocks_{Bytes{1} << 60};
  Bytes peak_ = 0;
};

struct RehearsedFrames {
  std::int64_t count = 0;
  Arena::Block block;
};

class StreamRehearsal {
 public:
  struct Conv {
    bool running = false;  // has a history
    Arena::Block history;
  };
  enum class Old { free, keep };             // the history before, which a skip path may hold on to
  enum class Arrival { in_place, by_copy };  // of frames that lie channel by channel

  // What one convolution is asked for beside its frames.
  struct ConvWay {
    Old old = Old::free;
    Arrival arrival = Arrival::in_place;
    std::int64_t lead = 0;  // TimeConvConfig::lead
  };

  StreamRehearsal(bool causal, at::ScalarType compute) : causal_(causal), compute_(compute) {}

  // TimeConv::push; `size` but for its frames.  `x` is given back before it convolves, if it has a block.
  RehearsedFrames convolve(ConvSize size, Conv& conv, RehearsedFrames x, Last last, ConvWay way);
  // ResidualStage::push of n frames.
  RehearsedFrames residual(const ConvSize& size, Conv& conv1, Conv& conv2, std::int64_t n, Last last);

  std::int64_t bytes(std::int64_t values) const;  // of so many computed
  Arena& arena() { return arena_; }

 private:
  void work_in(std::int64_t bytes);

  bool causal_;
  at::ScalarType compute_;
  Arena arena_;
  Arena::Block scratch_;  // what convolutions work in only grows
  std::int64_t scratch_bytes_ = 0;
};

}  // namespace sluice::ltx2
