#pragma once
// Which pages of a file are in memory, asked without touching one.
//
// mincore tells of every page, but says "all" of files that are neither ours nor ours to write; cachestat,
// newer, refuses there.  For such files single pages are tried with a read that does not wait (RWF_NOWAIT):
// enough to tell the runs that are in memory from those that are not.

#include "base/file.h"

#include <optional>
#include <random>
#include <vector>

namespace sluice::bytes {

enum class ResidencyMeans {
  pages,    // mincore
  samples,  // one read somewhere in each stride that must not wait; a miss brings its one page into memory
  nothing,  // neither is to be had: no page counts as resident
};

// Bytes of [begin, end) in the page cache, counted by the system (Linux 6.5).  Empty where it cannot or may
// not say.  0 on file systems of kind `stacked`, whose pages belong to another file.
std::optional<Bytes> counted_by_system(const File& file, Bytes begin, Bytes end);

// One thread at a time.  `file` must outlive it.
class Residency {
 public:
  explicit Residency(const File& file, Bytes stride = MiB(1));  // takes what can be trusted for this file
  Residency(const File& file, ResidencyMeans means, Bytes stride = MiB(1));

  ResidencyMeans means() const { return means_; }

  // One entry a page of [begin, end); begin is a multiple of the page size.
  std::vector<bool> pages(Bytes begin, Bytes end);

 private:
  std::vector<bool> ask_pages(Bytes begin, Bytes end);
  std::vector<bool> try_samples(Bytes begin, Bytes end);
  // A page of [begin, end), by chance: the page that a sample brought in must not be the next one's answer.
  std::optional<bool> try_sample(Bytes begin, Bytes end);
  bool confirmed(Bytes begin, Bytes end);

  const File& file_;
  const Bytes stride_;
  ResidencyMeans means_;
  std::optional<File> probe_;  // the file once more, without readahead
  std::minstd_rand random_;
};

}  // namespace sluice::bytes
