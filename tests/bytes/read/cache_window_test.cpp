#include "bytes/read/cache_window.h"

#include "bytes/read/mapping.h"
#include "support/resident_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

namespace sluice::bytes {
namespace {

using test::ResidentFile;

// Reads a file in pieces as a reader does, telling the window.
void read_piece(CacheWindow& window, const File& file, Bytes begin, Bytes end) {
  window.about_to_read(begin, end - begin);
  ResidentFile::read(file.descriptor(), begin, end);
  window.has_read(begin, end - begin);
}
void read_pieces(CacheWindow& window, const File& file, Bytes end, Bytes piece) {
  for (Bytes begin = 0; begin < end; begin += piece)
    read_piece(window, file, begin, std::min(begin + piece, end));
}

File open_without_readahead(const ResidentFile& file) {
  File open = File::open(file.path());
  ::posix_fadvise(open.descriptor(), 0, 0, POSIX_FADV_RANDOM);
  return open;
}

TEST(CacheWindow, leaves_nothing_of_what_was_read) {
  ResidentFile file(MiB(24) + 123);
  const File open = File::open(file.path());

  CacheWindow window(open, {});
  read_pieces(window, open, file.size(), MiB(1));
  EXPECT_GT(file.share(), 0.99);
  window.finish();

  EXPECT_LT(file.share(), 0.01);
}

TEST(CacheWindow, drops_by_its_destructor_what_is_left) {
  ResidentFile file(MiB(4));
  const File open = File::open(file.path());

  {
    CacheWindow window(open, {});
    read_pieces(window, open, file.size(), MiB(1));
  }

  EXPECT_LT(file.share(), 0.01);
}

TEST(CacheWindow, leaves_what_was_there_before) {
  ResidentFile file(MiB(24));
  file.bring_in(MiB(3) + KiB(4), MiB(9));
  file.bring_in(MiB(20), MiB(21));
  const auto before = file.pages();
  const File open = File::open(file.path());

  CacheWindow window(open, {});
  read_pieces(window, open, file.size(), MiB(1));
  window.finish();

  EXPECT_EQ(file.pages(), before);
}

TEST(CacheWindow, drops_what_the_system_read_ahead) {
  ResidentFile file(MiB(48));
  const File open = File::open(file.path());

  CacheWindow window(open, {});
  read_pieces(window, open, MiB(8), KiB(128));
  window.finish();

  EXPECT_LT(file.share(), 0.01);
}

TEST(CacheWindow, drops_a_window_once_reading_has_moved_on) {
  ResidentFile file(MiB(8));
  const File open = open_without_readahead(file);
  CacheWindow window(open, {}, MiB(2));

  read_piece(window, open, 0, MiB(1));
  read_piece(window, open, MiB(1), MiB(2));
  EXPECT_EQ(file.share(0, MiB(2)), 1);

  read_piece(window, open, MiB(2), MiB(3));
  EXPECT_EQ(file.share(0, MiB(2)), 0);
  EXPECT_EQ(file.share(MiB(2), MiB(3)), 1);
}

TEST(CacheWindow, waits_for_every_read_that_reaches_into_it) {
  ResidentFile file(MiB(8));
  const File open = open_without_readahead(file);
  CacheWindow window(open, {}, MiB(2));

  window.about_to_read(MiB(1), MiB(2));  // over the border
  read_piece(window, open, MiB(4), MiB(5));
  read_piece(window, open, MiB(5), MiB(6));
  ResidentFile::read(open.descriptor(), MiB(1), MiB(3));
  EXPECT_EQ(file.share(MiB(1), MiB(3)), 1);

  window.has_read(MiB(1), MiB(2));
  EXPECT_EQ(file.share(MiB(1), MiB(3)), 0);
  EXPECT_EQ(file.share(MiB(4), MiB(6)), 1);
}

TEST(CacheWindow, drops_again_what_a_late_read_brings_back) {
  ResidentFile file(MiB(8));
  file.bring_in(0, KiB(64));
  const auto before = file.pages();
  const File open = open_without_readahead(file);
  CacheWindow window(open, {}, MiB(2));
  read_piece(window, open, 0, MiB(1));
  read_piece(window, open, MiB(2), MiB(3));
  read_piece(window, open, MiB(4), MiB(5));

  read_piece(window, open, MiB(1), MiB(2));
  EXPECT_EQ(file.share(KiB(64), MiB(2)), 0);
  window.finish();

  EXPECT_EQ(file.pages(), before);
}

TEST(CacheWindow, drops_after_a_read_that_never_ended) {
  ResidentFile file(MiB(4));
  const File open = File::open(file.path());

  {
    CacheWindow window(open, {}, MiB(2));
    window.about_to_read(0, MiB(1));
    ResidentFile::read(open.descriptor(), 0, KiB(512));
  }

  EXPECT_LT(file.share(), 0.01);
}

TEST(CacheWindow, drops_pages_that_a_live_mapping_has_touched) {
  ResidentFile file(MiB(8));
  file.bring_in(MiB(3), MiB(4));
  const auto before = file.pages();
  const File open = File::open(file.path());
  Mapping mapping(open, file.size());
  // The system's readahead may be larger than the windows of this test.
  ::madvise(const_cast<std::byte*>(mapping.bytes().data()), file.size(), MADV_RANDOM);
  auto touch = [&](Bytes begin, Bytes end) {
    return std::accumulate(
        mapping.bytes().begin() + static_cast<std::ptrdiff_t>(begin),
        mapping.bytes().begin() + static_cast<std::ptrdiff_t>(end), 0u,
        [](unsigned sum, std::byte byte) { return sum + std::to_integer<unsigned>(byte); });
  };
  auto let_go = [&](Bytes begin, Bytes end) {
    ::madvise(const_cast<std::byte*>(mapping.bytes().data()) + begin, end - begin, MADV_DONTNEED);
  };

  CacheWindow window(open, let_go, MiB(2));
  for (Bytes begin = 0; begin < file.size(); begin += MiB(1)) {
    window.about_to_read(begin, MiB(1));
    EXPECT_GT(touch(begin, begin + MiB(1)), 0u);
    window.has_read(begin, MiB(1));
  }
  window.finish();

  EXPECT_EQ(file.pages(), before);
}

TEST(CacheWindow, drops_behind_several_threads) {
  ResidentFile file(MiB(32));
  file.bring_in(MiB(6), MiB(7));
  const auto before = file.pages();
  const File open = open_without_readahead(file);

  {
    CacheWindow window(open, {}, MiB(2));
    std::atomic<Bytes> next = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        // 700 KiB: some reads reach over a border.
        for (Bytes begin; (begin = next.fetch_add(KiB(700))) < file.size();)
          read_piece(window, open, begin, std::min<Bytes>(begin + KiB(700), file.size()));
      });
    }
    threads.clear();
  }

  EXPECT_EQ(file.pages(), before);
}

TEST(CacheWindow, is_content_with_an_empty_file) {
  test::TemporaryFolder folder;
  test::write_file(folder / "empty", "");
  const File open = File::open(folder / "empty");

  CacheWindow window(open, {});
  window.about_to_read(0, 0);
  window.has_read(0, 0);

  EXPECT_NO_THROW(window.finish());
}

}  // namespace
}  // namespace sluice::bytes
