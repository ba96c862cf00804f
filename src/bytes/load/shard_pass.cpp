#include "bytes/load/shard_pass.h"

#include "base/thread.h"
#include "bytes/load/touch_pages.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <system_error>
#include <thread>

namespace sluice::bytes {
namespace {

std::vector<bool> pooled_reads(const ShardPass& pass) {
  std::vector<bool> pooled;
  for (Route route : pass.routes) pooled.push_back(route == Route::pooled);
  return pooled;
}

// What one reader does with a read, before and after the bytes are there; shared by threads and ring.
class Reading {
 public:
  Reading(ShardPass& pass, ReadQueue& queue) : pass_(pass), queue_(queue) {}

  const Read& read_of(const ReadTask& task) const { return pass_.reads[task.read]; }

  // Where a pooled read begins, and the part of the buffer that it fills: widened to the alignment.
  Bytes begin_of(const ReadTask& task) const {
    return read_of(task).offset / pass_.alignment.offset * pass_.alignment.offset;
  }
  std::span<std::byte> buffer_of(const ReadTask& task) const {
    const Bytes unit = pass_.alignment.offset;
    return task.buffer.first((read_of(task).end() + unit - 1) / unit * unit - begin_of(task));
  }
  std::span<const std::byte> bytes_of(const ReadTask& task) const {
    if (task.buffer.empty()) return {};
    return task.buffer.subspan(read_of(task).offset - begin_of(task), read_of(task).size);
  }
  std::vector<std::span<std::byte>> places_of(const ReadTask& task) const {
    return spans_of(read_of(task), pass_.ranges, pass_.addresses);
  }

  void before(const ReadTask& task, std::span<const std::span<std::byte>> places) {
    const Read& read = read_of(task);
    if (pass_.window != nullptr) pass_.window->about_to_read(read.offset, read.size);
    if (pass_.prefetch != nullptr) pass_.prefetch->about_to_read(read.offset);
    if (!pass_.touch) return;
    const auto start = std::chrono::steady_clock::now();
    for (std::span<std::byte> place : places) touch_pages(place);
    const auto spent = std::chrono::steady_clock::now() - start;
    pass_.touch_nanoseconds += static_cast<std::uint64_t>(std::chrono::nanoseconds(spent).count());
  }

  void after(ReadTask task) {
    const Read& read = read_of(task);
    if (pass_.window != nullptr) pass_.window->has_read(read.offset, read.size);
    if (!task.buffer.empty() && copy_placed(read, pass_.ranges, pass_.addresses, bytes_of(task))) {
      queue_.give_back(task.buffer);
      task.buffer = {};
    }
    queue_.done(task);
  }

 private:
  ShardPass& pass_;
  ReadQueue& queue_;
};

void read_one(Reading& reading, ShardReader& reader, const ReadTask& task) {
  if (task.buffer.empty()) {
    const auto places = reading.places_of(task);
    reading.before(task, places);
    reader.read(reading.read_of(task).offset, places);
  } else {
    reading.before(task, {});
    const std::span<std::byte> to = reading.buffer_of(task);
    reader.read(reading.begin_of(task), {&to, 1});
  }
  reading.after(task);
}

void consume_one(const Reading& reading, ReadQueue& queue, const ConsumeRead& consume, const ReadTask& task) {
  consume(reading.read_of(task), reading.bytes_of(task));
  queue.give_back(task.buffer);
}

// Ends the readers if the consumer fails.
void consume_all(const Reading& reading, ReadQueue& queue, const ConsumeRead& consume,
                 const CancelToken* cancel) try {
  while (auto task = queue.next(cancel)) consume_one(reading, queue, consume, *task);
} catch (...) {
  queue.stop();
  throw;
}

// Without a thread to be had: read, consume, read, consume.
void run_alone(Reading& reading, ReadQueue& queue, ShardReader& reader, const ConsumeRead& consume,
               const CancelToken* cancel) {
  while (auto task = queue.take()) {
    read_one(reading, reader, *task);
    consume_one(reading, queue, consume, *queue.next(cancel));
  }
}

void work(Reading& reading, ReadQueue& queue, ShardReader& reader) try {
  while (auto task = queue.take()) read_one(reading, reader, *task);
} catch (...) {
  queue.fail(std::current_exception());
}

// Keeps as many reads in flight as there are buffers and the ring has room for.
class RingWork {
 public:
  RingWork(Reading& reading, ReadQueue& queue, Ring& ring) : reading_(reading), queue_(queue), ring_(ring) {}

  void operator()() try {
    while (true) {
      while (ring_.in_flight() < ring_.depth()) {
        // With nothing in flight there is nothing else to wait for.
        const auto task = ring_.in_flight() == 0 ? queue_.take() : queue_.try_take();
        if (!task) break;
        submit(*task);
      }
      if (ring_.in_flight() == 0) return;
      const auto finished = in_flight_.extract(ring_.wait());
      reading_.after(finished.mapped());
    }
  } catch (...) {
    queue_.fail(std::current_exception());
  }

 private:
  void submit(const ReadTask& task) {
    in_flight_.emplace(task.read, task);
    if (task.buffer.empty()) {
      const auto places = reading_.places_of(task);  // one: nothing else is routed past the pool
      reading_.before(task, places);
      ring_.submit(task.read, reading_.read_of(task).offset, places.front());
    } else {
      reading_.before(task, {});
      ring_.submit(task.read, reading_.begin_of(task), reading_.buffer_of(task));
    }
  }

  Reading& reading_;
  ReadQueue& queue_;
  Ring& ring_;
  std::map<std::uint64_t, ReadTask> in_flight_;
};

}  // namespace

void run_with_threads(ShardPass& pass, ShardReader& reader, const ConsumeRead& consume,
                      const CancelToken* cancel, const Warn& warn) {
  ReadQueue queue(pooled_reads(pass), pass.buffers);
  Reading reading(pass, queue);
  std::vector<std::jthread> readers;
  try {
    for (unsigned i = 0; i < pass.threads; ++i)
      readers.push_back(start_thread([&] { work(reading, queue, reader); }));
  } catch (const std::system_error& error) {
    warn(fmt::format("the system refused a reader thread: {} of {} started", readers.size(), pass.threads));
  }
  if (readers.empty()) {
    run_alone(reading, queue, reader, consume, cancel);
  } else {
    consume_all(reading, queue, consume, cancel);
  }
}

bool run_with_ring(ShardPass& pass, Ring& ring, const ConsumeRead& consume, const CancelToken* cancel) {
  ReadQueue queue(pooled_reads(pass), pass.buffers);
  Reading reading(pass, queue);
  std::jthread reader;
  try {
    reader = start_thread(RingWork(reading, queue, ring));
  } catch (const std::system_error&) {
    return false;
  }
  consume_all(reading, queue, consume, cancel);
  return true;
}

}  // namespace sluice::bytes
