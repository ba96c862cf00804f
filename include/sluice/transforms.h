#pragma once
// What becomes of tensors between the file and their destination, declared from names and shapes alone.
// Rules apply in the order in which they were added, each to the result of those before it.
//
//   Transforms()
//       .rename("model.diffusion_model.*", "*")
//       .cast("*", Dtype::BF16, Dtype::F16)                       // those that are F16
//       .split("*.qkv.weight", 0, {"*.q.weight", "*.k.weight", "*.v.weight"});
//
// A glob is a name in which "*" stands for any text, also none, and "?" for one character.  In a rule that
// makes names, each "*" of the new name stands for what the same "*" of the glob matched; where a glob can
// match in several ways, each "*" from the left takes as little as it can.  A glob that matches no tensor is a
// mistake and refused when the load is planned.

#include <sluice/checkpoint.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice {

bool glob_matches(std::string_view glob, std::string_view name);

struct RenameRule {
  std::string glob, name;
};
struct DropRule {
  std::string glob;
};
// Between F64, F32, F16, BF16, F8_E4M3 and F8_E5M2, rounded once to nearest even, what is too large to
// infinity, or in F8_E4M3, which has none, to 448; and between integers and booleans where every value fits
// (I32 to I64).  Others are refused.
struct CastRule {
  std::string glob;
  Dtype to;
  std::optional<Dtype> from;  // only tensors of this dtype; empty: of any
};
struct SliceRule {
  std::string glob;
  std::size_t dim;
  std::int64_t begin, end;  // 0 <= begin <= end <= extent
};
struct SplitRule {
  std::string glob;
  std::size_t dim;
  std::vector<std::string> names;     // one a part
  std::vector<std::int64_t> extents;  // of the parts along dim; empty: equal parts
};
// One result for each set of names that agree in what "*" stands for; every set must be whole.
struct ConcatenateRule {
  std::vector<std::string> globs;  // in order along dim
  std::size_t dim;
  std::string name;
};
struct TransposeRule {
  std::string glob;
  std::size_t first, second;  // the dimensions that change places
};
// F8_E4M3 with one scale a tensor: absmax / 448, as F32 [] under `name` + "_scale".  Values are value/scale,
// divided in F32 and rounded to nearest even.  The tensor is held in memory while it is quantized.  Only
// renaming can follow.
struct QuantizeRule {
  std::string glob;
  Dtype to = Dtype::F8_E4M3;
};

using TransformRule = std::variant<RenameRule, DropRule, CastRule, SliceRule, SplitRule, ConcatenateRule,
                                   TransposeRule, QuantizeRule>;

class Transforms {
 public:
  Transforms& add(TransformRule rule) {
    rules_.push_back(std::move(rule));
    return *this;
  }
  Transforms& rename(std::string glob, std::string name) { return add(RenameRule{glob, name}); }
  Transforms& drop(std::string glob) { return add(DropRule{glob}); }
  Transforms& cast(std::string glob, Dtype to, std::optional<Dtype> from = {}) {
    return add(CastRule{glob, to, from});
  }
  Transforms& slice(std::string glob, std::size_t dim, std::int64_t begin, std::int64_t end) {
    return add(SliceRule{glob, dim, begin, end});
  }
  Transforms& split(std::string glob, std::size_t dim, std::vector<std::string> names,
                    std::vector<std::int64_t> extents = {}) {
    return add(SplitRule{glob, dim, std::move(names), std::move(extents)});
  }
  Transforms& concatenate(std::vector<std::string> globs, std::size_t dim, std::string name) {
    return add(ConcatenateRule{std::move(globs), dim, name});
  }
  Transforms& transpose(std::string glob, std::size_t first = 0, std::size_t second = 1) {
    return add(TransposeRule{glob, first, second});
  }
  Transforms& quantize(std::string glob, Dtype to = Dtype::F8_E4M3) { return add(QuantizeRule{glob, to}); }

  const std::vector<TransformRule>& rules() const { return rules_; }

 private:
  std::vector<TransformRule> rules_;
};

}  // namespace sluice
