#include "bytes/read/ring.h"

#include "bytes/read/direct_file.h"
#include "bytes/read/ring_queue.h"
#include "bytes/read/shard_source.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <sys/resource.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::bytes {
namespace {

// The kernel takes buffers of at most 1 GiB.
constexpr Bytes kMostRegistered = GiB(1);

// The kernel cannot take a request now: it is short of memory, or of room for what has been completed.
bool is_busy(int error_number) {
  return error_number == EAGAIN || error_number == EBUSY;
}

std::string locked_memory_limit() {
  struct rlimit limit {};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return "locked memory is not limited";
  return fmt::format("locked memory is limited to {}", format_bytes(limit.rlim_cur));
}

Error refused(const File& file, int error_number) {
  std::string reason = system_reason(error_number);
  std::string remedy =
      "use --read-backend pread; containers and the setting kernel.io_uring_disabled may forbid io_uring";
  // The queues count as locked memory.
  if (error_number == ENOMEM) {
    reason += fmt::format(" ({})", locked_memory_limit());
    remedy = "use --read-backend pread, or raise the limit (ulimit -l)";
  }
  return Error(ErrorKind::io, fmt::format("{}: io_uring is refused: {}", file.path().string(), reason),
               remedy);
}

}  // namespace

struct Ring::State {
  // A read under way; its number in `reads` goes with it through the kernel.
  struct Read {
    std::uint64_t id = 0;
    Bytes offset = 0;  // of what is not there yet
    Bytes end = 0;
    std::span<std::byte> to;
    bool through_cache = false;  // of a file that is read past it otherwise
  };

  State(const File& file, bool direct, unsigned depth, DescribeOffset describe, Warn warn,
        std::optional<Bytes> size);
  ~State();

  void register_files();
  void register_buffers(std::span<std::byte> pool);

  unsigned in_flight() const { return static_cast<unsigned>(reads.size() - free.size()); }
  void push(std::size_t number);
  // Takes the next completion off the queue, waiting for it: the read's number and what became of it.
  std::pair<std::size_t, int> next_completion();
  void wait_for_completion();
  // True once the read is whole; starts what is missing of it.  On an error the read is over.
  bool settle(std::size_t number, int result);
  [[noreturn]] void end_with(std::size_t number, int error_number);

  ShardSource source;
  std::optional<DirectFile> direct;
  RingQueue queue;
  std::vector<Read> reads;                    // as many as the ring is deep
  std::vector<std::size_t> free;              // those not in use
  bool has_files = false;                     // registered: number 0, and 1 for the way through the cache
  std::vector<std::span<std::byte>> buffers;  // registered
};

Ring::State::State(const File& file, bool past_cache, unsigned depth, DescribeOffset describe, Warn warn,
                   std::optional<Bytes> size)
    : source(file, std::move(describe), std::move(warn), size), queue(depth), reads(depth) {
  if (queue.error() != 0) throw refused(file, queue.error());
  if (past_cache) {
    direct = open_direct(file);
    source.count_request();  // the first read
  }
  for (std::size_t number = depth; number > 0; --number) free.push_back(number - 1);
}

Ring::State::~State() {
  unsigned in_kernel = in_flight() - queue.not_taken();
  while (in_kernel > 0) {
    ::io_uring_cqe* completion = nullptr;
    const int result = ::io_uring_wait_cqe(queue.get(), &completion);
    if (is_busy(-result) || result == -EINTR) continue;
    if (result != 0) break;
    ::io_uring_cqe_seen(queue.get(), completion);
    --in_kernel;
  }
}

void Ring::State::register_files() {
  std::vector<int> descriptors = {source.file().descriptor()};
  if (direct) descriptors.insert(descriptors.begin(), direct->file.descriptor());
  const int result =
      ring_calls().register_files(queue.get(), descriptors.data(), static_cast<unsigned>(descriptors.size()));
  has_files = result == 0;
  if (!has_files) {
    source.warn(fmt::format("io_uring does not register the file ({}): it is used unregistered",
                            system_reason(-result)));
  }
}

void Ring::State::register_buffers(std::span<std::byte> pool) {
  std::vector<iovec> pieces;
  for (; !pool.empty(); pool = pool.subspan(buffers.back().size())) {
    buffers.push_back(pool.first(std::min<Bytes>(pool.size(), kMostRegistered)));
    pieces.push_back({buffers.back().data(), buffers.back().size()});
  }
  if (pieces.empty()) return;
  const int result =
      ring_calls().register_buffers(queue.get(), pieces.data(), static_cast<unsigned>(pieces.size()));
  if (result == 0) return;
  buffers.clear();
  source.warn(fmt::format("io_uring does not register the buffers ({}; {}): they are used unregistered",
                          system_reason(-result), locked_memory_limit()));
}

void Ring::State::push(std::size_t number) {
  const Read& read = reads[number];
  const bool is_direct = direct && !read.through_cache;
  // Past the cache whole blocks are asked for, else nothing beyond what there must be.
  const Bytes left = is_direct ? read.to.size() : read.end - read.offset;
  const std::span<std::byte> to = read.to.first(std::min(left, kMostPerCall));
  const int index = direct && read.through_cache ? 1 : 0;
  const int descriptor = is_direct ? direct->file.descriptor() : source.file().descriptor();
  auto buffer = std::ranges::find_if(buffers, [&](std::span<std::byte> b) {
    return b.data() <= to.data() && to.data() + to.size() <= b.data() + b.size();
  });

  // There is an entry for every read of the ring.
  ::io_uring_sqe* request = ::io_uring_get_sqe(queue.get());
  const auto size = static_cast<unsigned>(to.size());
  if (buffer == buffers.end()) {
    ::io_uring_prep_read(request, has_files ? index : descriptor, to.data(), size, read.offset);
  } else {
    ::io_uring_prep_read_fixed(request, has_files ? index : descriptor, to.data(), size, read.offset,
                               static_cast<int>(buffer - buffers.begin()));
  }
  if (has_files) ::io_uring_sqe_set_flags(request, IOSQE_FIXED_FILE);
  ::io_uring_sqe_set_data64(request, number);
  source.count_request();

  const int result = ring_calls().submit(queue.get());
  // What the kernel does not take now goes along when the next completion is waited for.
  if (result < 0 && !is_busy(-result) && result != -EINTR) throw refused(source.file(), -result);
}

std::pair<std::size_t, int> Ring::State::next_completion() {
  ::io_uring_cqe* completion = nullptr;
  while (::io_uring_peek_cqe(queue.get(), &completion) != 0) wait_for_completion();
  const auto number = static_cast<std::size_t>(::io_uring_cqe_get_data64(completion));
  const int result = ring_calls().completion(completion->res, reads[number].to);
  ::io_uring_cqe_seen(queue.get(), completion);
  return {number, result};
}

void Ring::State::wait_for_completion() {
  // Five seconds together: a system that is out of memory gets over it by then, or never.
  constexpr int kMostPauses = 5000;
  constexpr auto kPause = std::chrono::milliseconds(1);
  for (int pauses = 0; pauses < kMostPauses; ++pauses) {
    const int result = ring_calls().submit_and_wait(queue.get(), 1);
    if (result >= 0 || result == -EINTR) return;
    if (!is_busy(-result)) throw refused(source.file(), -result);
    if (in_flight() > queue.not_taken()) {
      ::io_uring_cqe* completion = nullptr;
      ::io_uring_wait_cqe(queue.get(), &completion);
      return;
    }
    std::this_thread::sleep_for(kPause);
  }
  throw refused(source.file(), EAGAIN);
}

bool Ring::State::settle(std::size_t number, int result) {
  Read& read = reads[number];
  const bool is_direct = direct && !read.through_cache;
  if (result < 0 && is_direct && refuses_direct(-result)) {
    read.through_cache = true;
    source.warn_once(kDirectRefused);
  } else if (result < 0 && result != -EINTR && result != -EAGAIN) {
    end_with(number, -result);
  } else if (result == 0 && read.offset < read.end) {
    end_with(number, 0);
  } else if (result > 0) {
    read.offset += static_cast<Bytes>(result);
    read.to = read.to.subspan(static_cast<std::size_t>(result));
    // It stopped inside a block, where direct reads cannot go on.
    if (is_direct && read.offset % direct->alignment.offset != 0) read.through_cache = true;
  }
  if (result >= 0 && read.offset >= read.end) return true;
  push(number);
  return false;
}

void Ring::State::end_with(std::size_t number, int error_number) {
  free.push_back(number);
  const Read& read = reads[number];
  if (error_number == 0) source.fail_cut_short(read.offset, read.end);
  source.fail(read.offset, error_number);
}

bool Ring::possible() {
  return RingQueue(1).error() == 0;
}

Ring::Ring(const File& file, bool direct, unsigned depth, std::span<std::byte> pool, DescribeOffset describe,
           Warn warn, std::optional<Bytes> size)
    : state_(std::make_unique<State>(file, direct, std::max(depth, 1u), std::move(describe), std::move(warn),
                                     size)) {
  state_->register_files();
  state_->register_buffers(pool);
}

Ring::~Ring() = default;

ReadAlignment Ring::alignment() const {
  return state_->direct ? state_->direct->alignment : ReadAlignment{};
}

unsigned Ring::depth() const {
  return static_cast<unsigned>(state_->reads.size());
}

unsigned Ring::in_flight() const {
  return state_->in_flight();
}

std::uint64_t Ring::requests() const {
  return state_->source.requests();
}

void Ring::submit(std::uint64_t id, Bytes offset, std::span<std::byte> to) {
  State& s = *state_;
  if (s.free.empty()) {
    throw Error(ErrorKind::internal,
                fmt::format("{}: more than {} reads in flight", s.source.file().path().string(), depth()));
  }
  Bytes end = offset + to.size();
  if (s.direct) {
    const std::span<std::byte> spans[] = {to};
    end = direct_end(s.source, s.direct->alignment, offset, spans);
  }
  const std::size_t number = s.free.back();
  s.free.pop_back();
  s.reads[number] = {.id = id, .offset = offset, .end = end, .to = to};
  s.push(number);
}

std::uint64_t Ring::wait() {
  State& s = *state_;
  if (s.in_flight() == 0) {
    throw Error(ErrorKind::internal,
                fmt::format("{}: no read in flight to wait for", s.source.file().path().string()));
  }
  for (;;) {
    auto [number, result] = s.next_completion();
    if (!s.settle(number, result)) continue;
    s.free.push_back(number);
    return s.reads[number].id;
  }
}

}  // namespace sluice::bytes
