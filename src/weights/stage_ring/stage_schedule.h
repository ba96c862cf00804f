#pragma once
// Which group is filled next, and into which place: decided from what was leased until now, without a thread
// or a clock.  Some groups have a place of their own and are filled once; the others share slots in turn, or
// keep one where there are enough.  After the last group of a pass comes the first one again.
//
// Places are numbered: those of the groups first, by group, then the slots.

#include <cstddef>
#include <exception>
#include <optional>
#include <vector>

namespace sluice::weights {

struct StageShape {
  std::vector<bool> resident;  // by group, in the order of a pass: whether it has a place of its own
  std::size_t slots = 0;       // at least one where a group has none
  std::size_t passes = 0;      // groups are read ahead for so many; 0: for ever
};

class StageSchedule {
 public:
  explicit StageSchedule(StageShape shape);

  // The pass has come to this group, and waits for it unless it is there.  Before all else.
  void demand(std::size_t group);

  struct Fill {
    std::size_t group = 0, place = 0;
  };
  // What to fill now: what is demanded, else the next group of the pass that is not there, if a slot is free
  // for it.  The place counts as being filled from now on.
  std::optional<Fill> next();
  void filled(const Fill& fill);
  void failed(const Fill& fill, std::exception_ptr error);  // kept until somebody demands the group

  // Of the demanded group: where it is; empty until it is filled.
  std::optional<std::size_t> place_of_demanded() const;
  std::exception_ptr take_error_of_demanded();
  bool demanded_is_stuck() const;  // every slot is leased

  void give_up_demand();  // nobody waits any more

  void lease();                          // the demanded group, which is there
  void unlease_lost(std::size_t group);  // leased, but its bytes turned out not to be there
  bool is_last_lease(std::size_t group) const;
  bool gives_slot_back(std::size_t group) const;  // when its last lease ends
  std::size_t place_of(std::size_t group) const;  // of a leased group
  void release(std::size_t group);

 private:
  enum class State { absent, filling, there };
  struct Group {
    State state = State::absent;
    std::size_t place = 0;
    std::size_t leases = 0;    // now
    std::size_t leased = 0;    // ever
    std::exception_ptr error;  // of its last fill
  };

  bool stays(std::size_t group) const { return shape_.resident[group] || slot_for_each_; }
  std::size_t distance(std::size_t group) const;  // groups until the pass comes to it
  std::optional<Fill> fill_of(std::size_t group);
  std::optional<std::size_t> room_for(std::size_t group);
  void forget(std::size_t group);

  const StageShape shape_;
  const bool slot_for_each_;
  std::vector<Group> groups_;
  std::vector<std::optional<std::size_t>> slots_;  // the group in each
  std::size_t position_ = 0;                       // the group that was demanded last
  bool demanded_ = false;                          // and is not leased yet
};

}  // namespace sluice::weights
