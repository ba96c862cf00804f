#pragma once
// What a ring of slots needs of whatever fills them, and no more.  A fill may go on after fill() returned, as
// copies to a device do; then the places are marked and waited for.  Without LibTorch, so that the ring can
// be tested with an engine that is later than any device.

#include <sluice/progress.h>

#include <cstddef>

namespace sluice::weights {

class FillEngine {
 public:
  virtual ~FillEngine() = default;

  // Begins to fill the place with the group's bytes, behind everything that used the place until its last
  // release().  Fills take place in the order in which they were begun.  Throws where the bytes cannot be
  // had; the place may be filled again then.  One thread at a time, not always the same; not the one that
  // calls the other two.
  virtual void fill(std::size_t group, std::size_t place, const CancelToken* cancel) = 0;

  // Returns when the fill of the place that was begun last has taken place.  Throws if it failed.
  virtual void wait(std::size_t place) = 0;

  // What the caller began with the place's bytes is the last; they are not needed after it.
  virtual void release(std::size_t place) noexcept = 0;
};

}  // namespace sluice::weights
