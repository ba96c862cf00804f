#include "weights/stage_ring/stage_schedule.h"

#include <algorithm>
#include <utility>

namespace sluice::weights {

StageSchedule::StageSchedule(StageShape shape)
    : shape_(std::move(shape)),
      slot_for_each_(static_cast<std::size_t>(std::ranges::count(shape_.resident, false)) <= shape_.slots),
      groups_(shape_.resident.size()),
      slots_(shape_.slots) {}

void StageSchedule::demand(std::size_t group) {
  position_ = group;
  demanded_ = true;
}

std::optional<StageSchedule::Fill> StageSchedule::next() {
  if (demanded_ && groups_[position_].state == State::absent && !groups_[position_].error)
    return fill_of(position_);
  for (std::size_t ahead = 1; ahead < groups_.size(); ++ahead) {
    const std::size_t group = (position_ + ahead) % groups_.size();
    const Group& known = groups_[group];
    if (known.state != State::absent || known.error) continue;
    if (shape_.passes > 0 && known.leased >= shape_.passes) continue;
    return fill_of(group);  // where it has no slot, those behind it have none either
  }
  return std::nullopt;
}

std::optional<StageSchedule::Fill> StageSchedule::fill_of(std::size_t group) {
  const auto place = shape_.resident[group] ? std::optional(group) : room_for(group);
  if (!place) return std::nullopt;
  groups_[group].state = State::filling;
  groups_[group].place = *place;
  return Fill{group, *place};
}

// An empty slot, else that of the group which is needed last, if that is later than this one.
std::optional<std::size_t> StageSchedule::room_for(std::size_t group) {
  std::optional<std::size_t> best;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!slots_[slot]) {
      best = slot;
      break;
    }
    const std::size_t there = *slots_[slot];
    if (groups_[there].state != State::there || groups_[there].leases > 0) continue;
    const std::size_t latest = best ? distance(*slots_[*best]) : distance(group);
    if (distance(there) > latest) best = slot;
  }
  if (!best) return std::nullopt;
  if (slots_[*best]) forget(*slots_[*best]);
  slots_[*best] = group;
  return groups_.size() + *best;
}

std::size_t StageSchedule::distance(std::size_t group) const {
  return (group + groups_.size() - position_) % groups_.size();
}

void StageSchedule::forget(std::size_t group) {
  groups_[group].state = State::absent;
  if (!shape_.resident[group]) slots_[groups_[group].place - groups_.size()].reset();
}

void StageSchedule::filled(const Fill& fill) {
  groups_[fill.group].state = State::there;
}

void StageSchedule::failed(const Fill& fill, std::exception_ptr error) {
  groups_[fill.group].error = std::move(error);
  forget(fill.group);
}

std::optional<std::size_t> StageSchedule::place_of_demanded() const {
  const Group& group = groups_[position_];
  return group.state == State::there ? std::optional(group.place) : std::nullopt;
}

std::exception_ptr StageSchedule::take_error_of_demanded() {
  return std::exchange(groups_[position_].error, nullptr);
}

bool StageSchedule::demanded_is_stuck() const {
  if (shape_.resident[position_] || groups_[position_].state != State::absent) return false;
  for (const auto& group : slots_) {
    if (!group || groups_[*group].leases == 0) return false;
  }
  return true;
}

void StageSchedule::lease() {
  Group& group = groups_[position_];
  if (group.leases++ == 0) ++group.leased;
  demanded_ = false;
}

void StageSchedule::give_up_demand() {
  demanded_ = false;
}

void StageSchedule::unlease_lost(std::size_t group) {
  if (--groups_[group].leases > 0) return;
  --groups_[group].leased;
  forget(group);
}

bool StageSchedule::is_last_lease(std::size_t group) const {
  return groups_[group].leases == 1;
}

bool StageSchedule::gives_slot_back(std::size_t group) const {
  return !stays(group);
}

std::size_t StageSchedule::place_of(std::size_t group) const {
  return groups_[group].place;
}

void StageSchedule::release(std::size_t group) {
  if (--groups_[group].leases == 0 && gives_slot_back(group)) forget(group);
}

}  // namespace sluice::weights
