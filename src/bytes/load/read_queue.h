#pragma once
// Where reader threads and the consumer meet: reads are handed out in ascending order, each with a buffer of
// a fixed pool if it needs one, and come back in the same order, whoever finishes first.
//
// Readers call take() and then done() or fail(); the consumer calls next() and gives buffers back.  stop()
// ends both sides: readers find nothing more to take.

#include <sluice/progress.h>
#include <sluice/units.h>

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace sluice::bytes {

struct ReadTask {
  std::size_t read = 0;         // its number in the plan
  std::span<std::byte> buffer;  // empty: it goes to its place at once
};

class ReadQueue {
 public:
  // needs_buffer: by read.  With any true, at least one buffer.
  ReadQueue(std::vector<bool> needs_buffer, std::vector<std::span<std::byte>> buffers);

  // The next read; waits for a free buffer if it needs one.  Empty at the end and after stop().
  std::optional<ReadTask> take();
  // The same, but empty also where it would have to wait.
  std::optional<ReadTask> try_take();
  // The bytes are there.  A buffer that is no longer needed can be given back before.
  void done(const ReadTask& task);
  // Ends the work; the first error of any reader is the one that next() throws.
  void fail(std::exception_ptr error);

  // The next read of the plan, once it is done: its buffer must be given back.  Empty at the end.  Throws the
  // readers' first error, or Error(interrupted) when `cancel` was set.
  std::optional<ReadTask> next(const CancelToken* cancel);
  void give_back(std::span<std::byte> buffer);

  void stop();

 private:
  bool can_take() const;  // with mutex_ held
  std::optional<ReadTask> take_now();

  const std::vector<bool> needs_buffer_;
  std::mutex mutex_;
  std::condition_variable may_take_, may_consume_;
  std::vector<std::span<std::byte>> free_;     // guarded by mutex_
  std::size_t next_take_ = 0;                  // guarded by mutex_
  std::size_t next_consume_ = 0;               // guarded by mutex_
  std::vector<std::optional<ReadTask>> done_;  // by read; guarded by mutex_
  std::exception_ptr error_;                   // guarded by mutex_
  bool stopped_ = false;                       // guarded by mutex_
};

}  // namespace sluice::bytes
