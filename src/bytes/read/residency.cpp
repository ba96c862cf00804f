#include "bytes/read/residency.h"

#include "base/syscalls.h"
#include "bytes/read/page_size.h"

#include <fmt/format.h>

#include <sys/syscall.h>
#include <algorithm>
#include <cerrno>

namespace sluice::bytes {
namespace {

// cachestat(2).  Older C libraries have no name for it.
constexpr long kCachestatCall = 451;
struct CachestatRange {
  std::uint64_t offset = 0, length = 0;  // length 0: to the end
};
struct Cachestat {
  std::uint64_t cached = 0, dirty = 0, writeback = 0, evicted = 0, recently_evicted = 0;  // pages
};

bool ask_system(const File& file, CachestatRange range, Cachestat& answer) {
  return ::syscall(kCachestatCall, file.descriptor(), &range, &answer, 0) == 0;
}

// Newer kernels have one rule for cachestat and mincore; only the first says that it does not answer.
bool is_refused(const File& file) {
  Cachestat answer;
  return !ask_system(file, {}, answer) && errno == EPERM;
}

// By descriptor: the name may mean another file by now.
std::optional<File> open_without_readahead(const File& file) {
  const std::string path = fmt::format("/proc/self/fd/{}", file.descriptor());
  const int descriptor = syscalls().open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);
  return File::adopt(descriptor, file.path());
}

}  // namespace

std::optional<Bytes> counted_by_system(const File& file, Bytes begin, Bytes end) {
  if (begin >= end) return 0;
  Cachestat answer;
  if (!ask_system(file, {.offset = begin, .length = end - begin}, answer)) return std::nullopt;
  return std::min(answer.cached * page_size(), end - begin);
}

Residency::Residency(const File& file, Bytes stride)
    : Residency(file, is_refused(file) ? ResidencyMeans::samples : ResidencyMeans::pages, stride) {}

Residency::Residency(const File& file, ResidencyMeans means, Bytes stride)
    : file_(file), stride_(stride), means_(means), random_(std::random_device()()) {}

std::vector<bool> Residency::pages(Bytes begin, Bytes end) {
  if (means_ == ResidencyMeans::pages) {
    std::vector<bool> answer = ask_pages(begin, end);
    const bool all = !answer.empty() && std::ranges::find(answer, false) == answer.end();
    if (!all || confirmed(begin, end)) return answer;
    means_ = ResidencyMeans::samples;  // it was told so by a kernel that tells everybody so
  }
  return try_samples(begin, end);
}

std::vector<bool> Residency::ask_pages(Bytes begin, Bytes end) {
  std::vector<bool> answer((end - begin + page_size() - 1) / page_size());
  if (answer.empty()) return answer;
  // Without access, so that it costs address space only.
  void* map =
      ::mmap(nullptr, end - begin, PROT_NONE, MAP_SHARED, file_.descriptor(), static_cast<off_t>(begin));
  if (map == MAP_FAILED) return answer;
  std::vector<unsigned char> states(answer.size());
  if (::mincore(map, end - begin, states.data()) == 0) {
    for (std::size_t i = 0; i < states.size(); ++i) answer[i] = (states[i] & 1) != 0;
  }
  ::munmap(map, end - begin);
  return answer;
}

std::vector<bool> Residency::try_samples(Bytes begin, Bytes end) {
  std::vector<bool> answer((end - begin + page_size() - 1) / page_size());
  const std::size_t step = std::max<std::size_t>(stride_ / page_size(), 1);
  for (std::size_t first = 0; first < answer.size() && means_ == ResidencyMeans::samples; first += step) {
    const std::size_t last = std::min(first + step, answer.size());
    const auto hit = try_sample(begin + first * page_size(), std::min(begin + last * page_size(), end));
    if (!hit) means_ = ResidencyMeans::nothing;
    if (hit.value_or(false))
      std::fill(answer.begin() + static_cast<std::ptrdiff_t>(first),
                answer.begin() + static_cast<std::ptrdiff_t>(last), true);
  }
  return answer;
}

// Empty where the file system has no such reads.
std::optional<bool> Residency::try_sample(Bytes begin, Bytes end) {
  const Bytes pages = (end - begin + page_size() - 1) / page_size();
  const Bytes offset = begin + std::uniform_int_distribution<Bytes>(0, pages - 1)(random_) * page_size();
  if (!probe_) probe_ = open_without_readahead(file_);
  if (!probe_) return std::nullopt;
  std::byte byte{};
  const iovec piece{&byte, 1};
  ssize_t got = -1;
  do {
    got = ::preadv2(probe_->descriptor(), &piece, 1, static_cast<off_t>(offset), RWF_NOWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno != EAGAIN) return std::nullopt;
  return got > 0;
}

// Whether everything is in memory as far as a few samples tell; true where there are none to be had.
bool Residency::confirmed(Bytes begin, Bytes end) {
  constexpr Bytes kSamples = 16;
  const Bytes step = std::max((end - begin) / kSamples / page_size(), Bytes(1)) * page_size();
  for (Bytes offset = begin; offset < end; offset += step) {
    if (!try_sample(offset, std::min(offset + step, end)).value_or(true)) return false;
  }
  return true;
}

}  // namespace sluice::bytes
