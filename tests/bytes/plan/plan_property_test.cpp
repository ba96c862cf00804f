// Any chain of rules over any tensors: the plan's ranges, walked in pieces of any size, give what the rules
// give when they are applied to whole tensors in memory, one element after the other.
#include "bytes/plan/load_plan_state.h"
#include "bytes/plan/part_copy.h"

#include "support/synthetic_file.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sluice::bytes {
namespace {

using test::SyntheticFile;
using Shape = std::vector<std::int64_t>;

// A tensor in memory; every operation makes another one.
struct Whole {
  Dtype dtype = Dtype::U8;
  Shape shape;
  std::string bytes;

  std::size_t element_size() const { return dtype_bits(dtype) / 8; }
};

std::size_t count(const Shape& shape) {
  std::size_t product = 1;
  for (std::int64_t extent : shape) product *= static_cast<std::size_t>(extent);
  return product;
}

// `from(index)`: the element that belongs at an index of the result.
template <typename From>
Whole gather(Dtype dtype, const Shape& shape, From from) {
  Whole result{dtype, shape, {}};
  for (std::size_t i = 0; i < count(shape); ++i) {
    Shape index(shape.size());
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
    result.bytes += from(index);
  }
  return result;
}

std::string element(const Whole& whole, const Shape& index) {
  std::size_t place = 0;
  for (std::size_t d = 0; d < index.size(); ++d)
    place = place * static_cast<std::size_t>(whole.shape[d]) + static_cast<std::size_t>(index[d]);
  return whole.bytes.substr(place * whole.element_size(), whole.element_size());
}

Whole sliced(const Whole& whole, std::size_t dim, std::int64_t begin, std::int64_t end) {
  Shape shape = whole.shape;
  shape[dim] = end - begin;
  return gather(whole.dtype, shape, [&](Shape index) {
    index[dim] += begin;
    return element(whole, index);
  });
}

Whole transposed(const Whole& whole, std::size_t first, std::size_t second) {
  Shape shape = whole.shape;
  std::swap(shape[first], shape[second]);
  return gather(whole.dtype, shape, [&](Shape index) {
    std::swap(index[first], index[second]);
    return element(whole, index);
  });
}

Whole concatenated(const std::vector<Whole>& parts, std::size_t dim) {
  Shape shape = parts.front().shape;
  shape[dim] = 0;
  for (const Whole& part : parts) shape[dim] += part.shape[dim];
  return gather(parts.front().dtype, shape, [&](Shape index) {
    std::size_t part = 0;
    while (index[dim] >= parts[part].shape[dim]) index[dim] -= parts[part++].shape[dim];
    return element(parts[part], index);
  });
}

Whole casted(const Whole& whole, Dtype to) {
  Whole result{to, whole.shape, std::string(count(whole.shape) * dtype_bits(to) / 8, '\0')};
  cast_elements(whole.dtype, std::as_bytes(std::span(whole.bytes)), to,
                std::as_writable_bytes(std::span(result.bytes)));
  return result;
}

// What there is at some point of the chain; names are chosen so that none is a glob.
using World = std::map<std::string, Whole>;

// Of full size from the first test on: small tensors are the rule here, but not empty ones.
std::int64_t up_to(std::int64_t most) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::int64_t>(0, most + 1));
}
std::size_t index_below(std::size_t size) {
  return static_cast<std::size_t>(up_to(static_cast<std::int64_t>(size) - 1));
}
Shape random_shape() {
  const auto extents = rc::gen::weightedElement<std::int64_t>({{1, 0}, {3, 1}, {6, 2}, {6, 3}, {6, 4}});
  return *rc::gen::container<Shape>(index_below(4), extents);
}

// Adds a random rule and applies it to the world; `step` makes new names unique.
class RandomRules {
 public:
  explicit RandomRules(World& world) : world_(world) {}

  void add() {
    ++step_;
    const auto name =
        std::next(world_.begin(), static_cast<std::ptrdiff_t>(index_below(world_.size())))->first;
    const bool has_dims = !world_[name].shape.empty();
    switch (up_to(6)) {
      case 0:
        return rename(name);
      case 1:
        return cast(name);
      case 2:
        return has_dims ? slice(name) : rename(name);
      case 3:
        return has_dims ? split_anywhere(name) : cast(name);
      case 4:
        return has_dims ? transpose(name) : cast(name);
      case 5:
        return has_dims ? concatenate_split(name) : rename(name);
      default:
        return has_dims ? concatenate_alike(name) : cast(name);
    }
  }

  const Transforms& transforms() const { return transforms_; }

 private:
  std::string new_name(std::size_t number) const { return fmt::format("t{}-{}", step_, number); }

  Whole take(const std::string& name) {
    Whole whole = std::move(world_[name]);
    world_.erase(name);
    return whole;
  }

  void rename(const std::string& name) {
    transforms_.rename(name, new_name(0));
    world_[new_name(0)] = take(name);
  }

  void cast(const std::string& name) {
    const auto to = *rc::gen::element(Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::F8_E4M3,
                                      Dtype::F8_E5M2, Dtype::I16, Dtype::I64);
    if (!can_cast(world_[name].dtype, to)) return;
    transforms_.cast(name, to);
    world_[name] = casted(world_[name], to);
  }

  void slice(const std::string& name) {
    const std::size_t dim = index_below(world_[name].shape.size());
    const std::int64_t end = up_to(world_[name].shape[dim]), begin = up_to(end);
    transforms_.slice(name, dim, begin, end);
    world_[name] = sliced(world_[name], dim, begin, end);
  }

  void transpose(const std::string& name) {
    const std::size_t dims = world_[name].shape.size(), first = index_below(dims), second = index_below(dims);
    transforms_.transpose(name, first, second);
    world_[name] = transposed(world_[name], first, second);
  }

  void split_anywhere(const std::string& name) { split(name, index_below(world_[name].shape.size())); }

  std::vector<std::string> split(const std::string& name, std::size_t dim) {
    const Whole whole = take(name);
    std::vector<std::string> names;
    std::vector<std::int64_t> extents;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i == 0 || begin < whole.shape[dim]; ++i) {
      const std::int64_t extent = std::min(up_to(3), whole.shape[dim] - begin);
      names.push_back(new_name(i));
      extents.push_back(extent);
      world_[names.back()] = sliced(whole, dim, begin, begin + extent);
      begin += extent;
    }
    transforms_.split(name, dim, names, extents);
    return names;
  }

  void join(const std::vector<std::string>& names, std::size_t dim) {
    ++step_;
    std::vector<Whole> parts;
    for (const std::string& name : names) parts.push_back(take(name));
    transforms_.concatenate(names, dim, new_name(0));
    world_[new_name(0)] = concatenated(parts, dim);
  }

  // Puts the parts of a tensor together again in another order.
  void concatenate_split(const std::string& name) {
    const std::size_t dim = index_below(world_[name].shape.size());
    std::vector<std::string> names = split(name, dim);
    std::reverse(names.begin(), names.end());
    join(names, dim);
  }

  // Joins it with others of its dtype and shape.
  void concatenate_alike(const std::string& name) {
    const Whole& first = world_[name];
    std::vector<std::string> names;
    for (const auto& [other, whole] : world_) {
      if (whole.dtype == first.dtype && whole.shape == first.shape) names.push_back(other);
    }
    join(names, index_below(first.shape.size()));
  }

  World& world_;
  Transforms transforms_;
  int step_ = 0;
};

// Tensors of few shapes and dtypes, so that some go together.
SyntheticFile random_file() {
  SyntheticFile file;
  const Shape common = random_shape();
  const std::int64_t tensors = 1 + up_to(3);
  for (std::int64_t i = 0; i < tensors; ++i) {
    const auto dtype =
        *rc::gen::element(Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::U8, Dtype::I64, Dtype::F8_E4M3);
    const Shape other = random_shape();
    file.tensor(fmt::format("s{}", i), dtype, up_to(1) == 0 ? common : other);
  }
  return file;
}

World read_all(const Checkpoint& checkpoint) {
  World world;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    std::string bytes(tensor.size, '\0');
    checkpoint.read(tensor, std::as_writable_bytes(std::span(bytes)));
    world[tensor.name] = {tensor.dtype, tensor.shape, bytes};
  }
  return world;
}

// Every target, from the ranges of the file in pieces of random numbers of elements.
World walk(const PlanState& plan, const std::string& file) {
  std::vector<std::string> targets;
  for (const Target& target : plan.targets) targets.emplace_back(target.tensor.size, '?');
  for (const WantedRange& range : plan.ranges) {
    const Target& target = plan.targets[range.target];
    const Part& part = target.parts[range.part];
    const Bytes size = dtype_bits(part.source.dtype) / 8;
    for (Bytes done = 0, length; done < range.size; done += length) {
      length = std::min(range.size - done, size * (1 + index_below(7)));
      const std::string piece = file.substr(range.offset + done, length);
      copy_piece(part, target.tensor, range.part_offset + done, std::as_bytes(std::span(piece)),
                 std::as_writable_bytes(std::span(targets[range.target])));
    }
  }
  World world;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const TargetTensor& tensor = plan.targets[i].tensor;
    world[tensor.name] = {tensor.dtype, tensor.shape, targets[i]};
  }
  return world;
}

// The order that the engine relies on.
bool is_in_order(const PlanState& plan) {
  Bytes end = 0;
  std::vector<std::size_t> last(plan.targets.size(), 0);
  for (std::size_t i = 0; i < plan.ranges.size(); ++i) {
    if (plan.ranges[i].offset < end || plan.ranges[i].size == 0) return false;
    end = plan.ranges[i].offset + plan.ranges[i].size;
    last[plan.ranges[i].target] = i;
  }
  std::erase(last, 0);  // those without bytes, and at most one more
  return std::ranges::is_sorted(last);
}

// A straight target is its ranges, one after the other.
bool straight_is_straight(const PlanState& plan, const World& world, const std::string& file) {
  std::vector<std::string> bytes(plan.targets.size());
  for (const WantedRange& range : plan.ranges) bytes[range.target] += file.substr(range.offset, range.size);
  for (std::size_t i = 0; i < plan.targets.size(); ++i) {
    const Target& target = plan.targets[i];
    if (!target.straight && !target.cast_only) continue;
    Whole whole{target.parts.front().source.dtype, target.tensor.shape, bytes[i]};
    if (casted(whole, target.tensor.dtype).bytes != world.at(target.tensor.name).bytes) return false;
  }
  return true;
}

bool same(const World& a, const World& b) {
  return std::ranges::equal(a, b, [](const auto& left, const auto& right) {
    return left.first == right.first && left.second.dtype == right.second.dtype &&
           left.second.shape == right.second.shape && left.second.bytes == right.second.bytes;
  });
}

TEST(AnyChainOfRules, gives_what_it_gives_on_whole_tensors_in_memory) {
  EXPECT_TRUE(rc::check([] {
    const SyntheticFile file = random_file();
    const test::WrittenFile written = file.write();
    const Checkpoint checkpoint = Checkpoint::open(written.path());
    World expected = read_all(checkpoint);
    RandomRules rules(expected);
    for (std::int64_t i = 2 + up_to(8); i > 0; --i) rules.add();

    const LoadPlan plan = plan_load(checkpoint, {.transforms = rules.transforms()});

    const PlanState& state = LoadPlanAccess::state(plan);
    const World walked = walk(state, file.content());
    RC_ASSERT(same(walked, expected));
    RC_ASSERT(is_in_order(state));
    RC_ASSERT(straight_is_straight(state, walked, file.content()));
  }));
}

}  // namespace
}  // namespace sluice::bytes
