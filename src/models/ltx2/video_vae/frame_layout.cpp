#include "models/ltx2/video_vae/frame_layout.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

// Of an axis with one place the stride says nothing.
bool has_stride(const at::Tensor& x, std::int64_t axis, std::int64_t stride) {
  return x.size(axis) == 1 || x.stride(axis) == stride;
}

// work(clip, frame, row) for every row of every picture.
template <typename Work>
void each_row(const at::Tensor& x, const Work& work) {
  const std::int64_t frames = x.size(2), height = x.size(3);
  at::parallel_for(0, x.size(0) * frames * height, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) work(i / height / frames, i / height % frames, i % height);
  });
}

template <typename T>
class Shuffler {
 public:
  Shuffler(const at::Tensor& x, Shuffle by, const std::vector<FrameRef>& skip, const at::Tensor& out)
      : x_(x), by_(by), skip_(skip), out_(out) {}

  void row(std::int64_t clip, std::int64_t frame, std::int64_t row) const {
    const std::int64_t width = x_.size(4), channels = x_.size(1);
    const FrameRef* skip = skip_.empty() ? nullptr : &skip_[static_cast<std::size_t>(frame)];
    const std::int64_t skipped = skip ? skip->frames.size(1) : 0;
    const T* beside = skip ? frame_values<T>(*skip, clip) + row * width * skipped : nullptr;
    const T* from = frame_values<T>(x_, clip, frame) + row * width * channels;
    for (std::int64_t w = 0; w < width; ++w) {
      for (std::int64_t place = 0; place < by_.places(); ++place)
        spread(from + w * channels + place, beside ? beside + w * skipped + place : nullptr,
               skipped / by_.places(), position(clip, frame, row, w, place));
    }
  }

 private:
  // Where the channels of one of the shuffled places go.
  T* position(std::int64_t clip, std::int64_t frame, std::int64_t row, std::int64_t column,
              std::int64_t place) const {
    const std::int64_t t = place / (by_.h * by_.w), h = place / by_.w % by_.h, w = place % by_.w;
    return frame_values<T>(out_, clip, frame * by_.t + t) +
           ((row * by_.h + h) * out_.size(4) + column * by_.w + w) * out_.size(1);
  }

  void spread(const T* from, const T* beside, std::int64_t repeat, T* to) const {
    const std::int64_t places = by_.places(), channels = out_.size(1);
    if (!beside) {
      for (std::int64_t c = 0; c < channels; ++c) to[c] = from[c * places];
    } else {
      for (std::int64_t c = 0; c < channels; ++c)
        to[c] = static_cast<T>(from[c * places] + beside[c % repeat * places]);
    }
  }

  const at::Tensor& x_;
  Shuffle by_;
  const std::vector<FrameRef>& skip_;
  const at::Tensor& out_;
};

// One row of groups at a time: what a position is made of lies at `places` positions of its frames.
template <typename T>
class Gatherer {
 public:
  Gatherer(const std::vector<FrameRef>& frames, Shuffle by, const std::vector<FrameRef>& skip,
           std::int64_t mean_of, const at::Tensor& out)
      : frames_(frames), by_(by), skip_(skip), mean_of_(mean_of), out_(out) {}

  void row(std::int64_t clip, std::int64_t group, std::int64_t row) const {
    const std::int64_t channels = out_.size(1), width = out_.size(4);
    T* to = frame_values<T>(out_, clip, group) + row * width * channels;
    std::vector<Sum> sums(static_cast<std::size_t>(channels));
    for (std::int64_t w = 0; w < width; ++w) {
      std::fill(sums.begin(), sums.end(), Sum(0));
      for (std::int64_t place = 0; place < by_.places(); ++place)
        add_means(at(skip_, clip, group, row, w, place), place, sums.data());
      for (std::int64_t place = 0; place < by_.places(); ++place)
        finish(at(frames_, clip, group, row, w, place), place, sums.data(), to + w * channels);
    }
  }

 private:
  using Sum = at::opmath_type<T>;

  struct Position {
    const T* values;
    std::int64_t channels;
  };

  Position at(const std::vector<FrameRef>& frames, std::int64_t clip, std::int64_t group, std::int64_t row,
              std::int64_t column, std::int64_t place) const {
    const std::int64_t t = place / (by_.h * by_.w), h = place / by_.w % by_.h, w = place % by_.w;
    const FrameRef& frame = frames[static_cast<std::size_t>(group * by_.t + t)];
    const std::int64_t channels = frame.frames.size(1), position = (row * by_.h + h) * frame.frames.size(4);
    return {frame_values<T>(frame, clip) + (position + column * by_.w + w) * channels, channels};
  }

  void add_means(Position from, std::int64_t place, Sum* sums) const {
    for (std::int64_t c = 0; c < from.channels; ++c)
      sums[(c * by_.places() + place) / mean_of_] += static_cast<Sum>(from.values[c]);
  }

  void finish(Position from, std::int64_t place, const Sum* sums, T* to) const {
    for (std::int64_t c = 0; c < from.channels; ++c) {
      const std::int64_t i = c * by_.places() + place;
      to[i] = static_cast<T>(static_cast<Sum>(from.values[c]) + sums[i] / static_cast<Sum>(mean_of_));
    }
  }

  const std::vector<FrameRef>& frames_;
  Shuffle by_;
  const std::vector<FrameRef>& skip_;
  std::int64_t mean_of_;
  const at::Tensor& out_;
};

}  // namespace

std::int64_t frame_count(const at::Tensor& frames) {
  return frames.defined() ? frames.size(2) : 0;
}

at::Tensor empty_frames(const at::Tensor& like, std::int64_t channels, std::int64_t frames) {
  return at::empty({like.size(0), channels, frames, like.size(3), like.size(4)},
                   like.options().memory_format(at::MemoryFormat::ChannelsLast3d));
}

at::Tensor as_frames(const at::Tensor& x) {
  const std::int64_t channels = x.size(1), row = channels * x.size(4);
  const bool fits = has_stride(x, 1, 1) && has_stride(x, 4, channels) && has_stride(x, 3, row);
  return fits ? x : x.contiguous(at::MemoryFormat::ChannelsLast3d);
}

at::Tensor depth_to_space(const at::Tensor& given, Shuffle by, const std::vector<FrameRef>& skip) {
  const at::Tensor x = as_frames(given);
  at::Tensor out =
      at::empty({x.size(0), x.size(1) / by.places(), x.size(2) * by.t, x.size(3) * by.h, x.size(4) * by.w},
                x.options().memory_format(at::MemoryFormat::ChannelsLast3d));
  AT_DISPATCH_ALL_TYPES_AND(at::kBFloat16, x.scalar_type(), "depth_to_space", [&] {
    const Shuffler<scalar_t> shuffler(x, by, skip, out);
    each_row(x, [&](auto clip, auto frame, auto row) { shuffler.row(clip, frame, row); });
  });
  return out;
}

at::Tensor unpatchify(const at::Tensor& given, std::int64_t patch) {
  const at::Tensor x = as_frames(given);
  const std::int64_t channels = x.size(1) / (patch * patch), width = x.size(4);
  at::Tensor out = at::empty({x.size(0), channels, x.size(2), x.size(3) * patch, width * patch}, x.options());
  AT_DISPATCH_ALL_TYPES_AND(at::kBFloat16, x.scalar_type(), "unpatchify", [&] {
    each_row(x, [&](std::int64_t clip, std::int64_t frame, std::int64_t row) {
      const scalar_t* from = frame_values<scalar_t>(x, clip, frame) + row * width * x.size(1);
      scalar_t* picture = frame_values<scalar_t>(out, clip, frame);
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t h = 0; h < patch; ++h) {
          scalar_t* to = picture + c * out.stride(1) + (row * patch + h) * width * patch;
          for (std::int64_t w = 0; w < width * patch; ++w)
            to[w] = from[w / patch * x.size(1) + (c * patch + w % patch) * patch + h];
        }
      }
    });
  });
  return out;
}

at::Tensor space_to_depth(const std::vector<FrameRef>& frames, Shuffle by, const std::vector<FrameRef>& skip,
                          std::int64_t mean_of) {
  if (frames.empty()) return {};
  const at::Tensor& x = frames.front().frames;
  const std::int64_t groups = static_cast<std::int64_t>(frames.size()) / by.t;
  at::Tensor out = at::empty({x.size(0), x.size(1) * by.places(), groups, x.size(3) / by.h, x.size(4) / by.w},
                             x.options().memory_format(at::MemoryFormat::ChannelsLast3d));
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, x.scalar_type(), "space_to_depth", [&] {
    const Gatherer<scalar_t> gatherer(frames, by, skip, mean_of, out);
    each_row(out, [&](auto clip, auto group, auto row) { gatherer.row(clip, group, row); });
  });
  return out;
}

void patchify(const at::Tensor& pixels, std::int64_t patch, const at::Tensor& to) {
  const std::int64_t channels = pixels.size(1), width = to.size(4);
  const at::IntArrayRef strides = pixels.strides();
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, to.scalar_type(), "patchify", [&] {
    each_row(to, [&](std::int64_t clip, std::int64_t frame, std::int64_t row) {
      const float* picture = pixels.const_data_ptr<float>() + clip * strides[0] + frame * strides[2];
      scalar_t* into = frame_values<scalar_t>(to, clip, frame) + row * width * to.size(1);
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t h = 0; h < patch; ++h) {
          const float* from = picture + c * strides[1] + (row * patch + h) * strides[3];
          for (std::int64_t w = 0; w < width * patch; ++w)
            into[w / patch * to.size(1) + (c * patch + w % patch) * patch + h] =
                static_cast<scalar_t>(from[w * strides[4]]);
        }
      }
    });
  });
}

}  // namespace sluice::ltx2
