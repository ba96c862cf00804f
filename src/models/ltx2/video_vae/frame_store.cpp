#include "models/ltx2/video_vae/frame_store.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <string>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kTime = 2;  // axis

File nameless_file(const std::filesystem::path& folder) {
  std::string name = (folder.empty() ? std::filesystem::path(".") : folder) / ".sluice-frames.XXXXXX";
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0)
    throw Error(
        ErrorKind::io,
        fmt::format("{}: cannot make a file for frames that wait: {}", folder.string(), system_reason(errno)),
        system_remedy(errno));
  ::unlink(name.c_str());
  return File::adopt(descriptor, folder / "(frames)");
}

std::span<std::byte> bytes_of(const at::Tensor& frame) {
  return {static_cast<std::byte*>(frame.data_ptr()), frame.nbytes()};
}

// Pages of the file are of no use once they are on the disk: they are wanted again much later.  Where the
// system does not do as it is asked, they stay in its cache, from where it takes them when it must.
void let_go(const File& file, Bytes begin, Bytes end) {
  const auto offset = static_cast<off64_t>(begin);
  const auto length = static_cast<off64_t>(end - begin);
  ::sync_file_range(file.descriptor(), offset, length,
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  ::posix_fadvise(file.descriptor(), offset, length, POSIX_FADV_DONTNEED);
}

}  // namespace

FrameStore::FrameStore(const std::filesystem::path& folder) : file_(nameless_file(folder)) {}

void FrameStore::append(std::size_t index, const at::Tensor& frames) {
  if (tracks_.size() <= index) tracks_.resize(index + 1);
  Track& track = tracks_[index];
  const Bytes begin = end_;
  for (std::int64_t i = 0; i < frames.size(kTime); i++) {
    const at::Tensor frame = frames.narrow(kTime, i, 1).contiguous();
    track.shape = frame.sizes().vec();
    track.dtype = frame.scalar_type();
    track.frame_bytes = frame.nbytes();
    write_all(file_, bytes_of(frame), file_.path());
    track.offsets.push_back(end_);
    end_ += track.frame_bytes;
  }
  let_go(file_, begin, end_);
}

at::Tensor FrameStore::frame(std::size_t index, std::int64_t number) const {
  const Track& track = tracks_.at(index);
  at::Tensor frame = at::empty(track.shape, at::TensorOptions(track.dtype));
  const Bytes offset = track.offsets.at(static_cast<std::size_t>(number));
  read_exact(file_, bytes_of(frame), offset, "a frame");
  let_go(file_, offset, offset + track.frame_bytes);
  return frame;
}

}  // namespace sluice::ltx2
