#include "bytes/plan/transform_rules.h"

#include "base/text.h"
#include "bytes/plan/concatenate_rule.h"
#include "bytes/plan/glob.h"
#include "bytes/plan/part_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace sluice::bytes {
namespace {

// One rule at work.  Each call returns how many tensors the rule matched.
class RuleRun {
 public:
  RuleRun(const TransformRule& rule, std::vector<VirtualTensor>& tensors, PlanProblems& problems)
      : rule_(describe(rule)), tensors_(tensors), problems_(problems) {}

  std::size_t operator()(const RenameRule& rule) {
    std::size_t matched = 0;
    auto rename = [&](std::string& name) {
      auto captures = glob_capture(rule.glob, name);
      if (!captures) return;
      ++matched;
      name = fill_stars(rule.name, *captures);
    };
    for (VirtualTensor& tensor : tensors_) {
      rename(tensor.name);
      if (tensor.scale_name) rename(*tensor.scale_name);
    }
    return matched;
  }

  std::size_t operator()(const DropRule& rule) {
    const std::size_t before = tensors_.size();
    std::size_t kept = 0;
    std::erase_if(tensors_, [&](const VirtualTensor& tensor) {
      if (!glob_matches(rule.glob, tensor.name)) return false;
      if (is_free(tensor)) return true;
      ++kept;
      return false;
    });
    return before - tensors_.size() + kept;
  }

  std::size_t operator()(const CastRule& rule) {
    return change(rule.glob, [&](VirtualTensor& tensor) {
      if (rule.from && tensor.dtype != *rule.from) return;
      if (!is_free(tensor)) return;
      if (!can_cast(tensor.dtype, rule.to)) {
        tell(tensor,
             fmt::format("is {}, which cannot be cast to {}", dtype_name(tensor.dtype), dtype_name(rule.to)));
        return;
      }
      cast(tensor, rule.to);
    });
  }

  std::size_t operator()(const SliceRule& rule) {
    return change(rule.glob, [&](VirtualTensor& tensor) {
      if (!is_free(tensor) || tell(tensor, why_not_slice(tensor, rule.dim, rule.begin, rule.end))) return;
      slice(tensor, rule.dim, rule.begin, rule.end);
    });
  }

  std::size_t operator()(const TransposeRule& rule) {
    return change(rule.glob, [&](VirtualTensor& tensor) {
      if (!is_free(tensor) || tell(tensor, why_not_dimension(tensor, std::max(rule.first, rule.second))))
        return;
      transpose(tensor, rule.first, rule.second);
    });
  }

  std::size_t operator()(const QuantizeRule& rule) {
    return change(rule.glob, [&](VirtualTensor& tensor) {
      const bool wide = tensor.dtype == Dtype::F64 || tensor.dtype == Dtype::F32 ||
                        tensor.dtype == Dtype::F16 || tensor.dtype == Dtype::BF16;
      if (!is_free(tensor)) return;
      if (!wide) {
        tell(tensor, fmt::format("is {}, which is not quantized", dtype_name(tensor.dtype)));
        return;
      }
      tensor.scale_name = tensor.name + "_scale";
    });
  }

  std::size_t operator()(const SplitRule& rule) {
    std::size_t matched = 0;
    std::vector<VirtualTensor> result;
    result.reserve(tensors_.size());
    for (VirtualTensor& tensor : tensors_) {
      auto captures = glob_capture(rule.glob, tensor.name);
      matched += captures ? 1 : 0;
      if (captures && is_free(tensor) && !tell(tensor, why_not_split(tensor, rule))) {
        append_split(tensor, rule, *captures, result);
      } else {
        result.push_back(std::move(tensor));
      }
    }
    tensors_ = std::move(result);
    return matched;
  }

  std::size_t operator()(const ConcatenateRule& rule) {
    return apply_concatenate(rule, rule_, tensors_, problems_);
  }

  const std::string& rule() const { return rule_; }

 private:
  template <typename Change>
  std::size_t change(const std::string& glob, Change change) {
    std::size_t matched = 0;
    for (VirtualTensor& tensor : tensors_) {
      if (!glob_matches(glob, tensor.name)) continue;
      ++matched;
      change(tensor);
    }
    return matched;
  }

  // True if there is something to tell.
  bool tell(const VirtualTensor& tensor, const std::string& reason) {
    if (!reason.empty()) problems_.misfit(fmt::format("{}: {} {}", rule_, describe(tensor), reason));
    return !reason.empty();
  }

  bool is_free(const VirtualTensor& tensor) {
    return !tell(tensor, tensor.scale_name ? std::string(kQuantized) : std::string());
  }

  static std::string why_not_split(const VirtualTensor& tensor, const SplitRule& rule) {
    if (rule.dim >= tensor.shape.size()) return why_not_dimension(tensor, rule.dim);
    const std::int64_t extent = tensor.shape[rule.dim];
    const auto parts = static_cast<std::int64_t>(rule.names.size());
    if (rule.extents.empty()) {
      if (extent % parts == 0) return {};
      return fmt::format("cannot be split into {} equal parts along dimension {}", parts, rule.dim);
    }
    std::int64_t sum = 0;
    for (std::int64_t part : rule.extents) {
      if (__builtin_add_overflow(sum, part, &sum)) return "has less than what is asked for";
    }
    if (sum == extent) return {};
    return fmt::format("has {} along dimension {}, the parts have {} together", extent, rule.dim, sum);
  }

  static void append_split(const VirtualTensor& tensor, const SplitRule& rule, const Captures& captures,
                           std::vector<VirtualTensor>& to) {
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < rule.names.size(); ++i) {
      const std::int64_t extent = rule.extents.empty()
                                      ? tensor.shape[rule.dim] / static_cast<std::int64_t>(rule.names.size())
                                      : rule.extents[i];
      VirtualTensor& part = to.emplace_back(tensor);
      slice(part, rule.dim, begin, begin + extent);
      part.name = fill_stars(rule.names[i], captures);
      begin += extent;
    }
  }

  std::string rule_;
  std::vector<VirtualTensor>& tensors_;
  PlanProblems& problems_;
};

}  // namespace

void apply_rules(const Transforms& transforms, bool may_match_nothing, std::vector<VirtualTensor>& tensors,
                 PlanProblems& problems) {
  for (const TransformRule& rule : transforms.rules()) {
    if (std::string reason = why_impossible(rule); !reason.empty()) {
      problems.impossible(fmt::format("{}: {}", describe(rule), reason));
      continue;
    }
    RuleRun run(rule, tensors, problems);
    if (std::visit(run, rule) == 0 && !may_match_nothing)
      problems.misfit(fmt::format("{}: matches no tensor", run.rule()));
  }
}

}  // namespace sluice::bytes
