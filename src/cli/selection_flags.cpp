#include "cli/selection_flags.h"

#include "cli/rule_text.h"

#include <functional>

namespace sluice::cli {
namespace {

// A flag that may be given several times, with one value each.
void add_globs(CLI::App& command, const char* flag, std::vector<std::string>& globs, const char* description,
               const char* group) {
  command.add_option(flag, globs, description)->allow_extra_args(false)->type_name("GLOB")->group(group);
}

// The same for rules: `add` is called once for each, in the order of the command line over all such flags.
void add_rules(CLI::App& command, const char* flag, std::function<void(const std::string&)> add,
               const char* description, const char* type) {
  command.add_option_function<std::string>(flag, std::move(add), description)
      ->trigger_on_parse()
      ->type_name(type)
      ->group("Transforms, in the order given; repeatable");
}

}  // namespace

void SelectionFlags::add_to(CLI::App& command) {
  add_filters(command);
  add_ranks(command);
  add_transforms(command);
}

void SelectionFlags::add_filters(CLI::App& command) {
  const char* group = "Filters";
  TensorFilter& filter = request_.filter;
  add_globs(command, "--include", filter.include, "only tensors of such names; repeatable", group);
  add_globs(command, "--exclude", filter.exclude, "no tensors of such names; repeatable", group);
  command.add_flag("--skip-vision", filter.skip_vision, "no vision tower (model.visual.…, visual.…)")
      ->group(group);
  command.add_flag("--skip-mtp", filter.skip_mtp, "no layers for multi-token prediction (mtp.…)")
      ->group(group);
  command.add_flag("--skip-input-scales", filter.skip_input_scales, "nothing that ends in .input_scale")
      ->group(group);
}

void SelectionFlags::add_ranks(CLI::App& command) {
  const char* group = "One of several equal processes";
  command.add_option("--rank", request_.rank.index, "which one, from 0")->group(group);
  command.add_option("--world", request_.rank.world, "how many there are")->group(group);
  command
      .add_flag("--expert-parallel", request_.rank.expert_parallel,
                "of tensors named experts.N. only those of this rank's experts")
      ->group(group);
  add_globs(command, "--slice-rows", rows_, "only this rank's rows of such tensors; repeatable", group);
  add_globs(command, "--slice-columns", columns_, "only this rank's columns; repeatable", group);
}

void SelectionFlags::add_transforms(CLI::App& command) {
  Transforms& rules = request_.transforms;
  add_rules(
      command, "--rename", [&rules](const std::string& text) { rules.add(parse_rename(text)); },
      "FROM=TO: each * of TO is what the same * of FROM matched", "GLOB=NAME");
  add_rules(
      command, "--drop", [&rules](const std::string& glob) { rules.drop(glob); }, "leave tensors out",
      "GLOB");
  add_rules(
      command, "--cast", [&rules](const std::string& text) { rules.add(parse_cast(text)); },
      "to another element type: BF16, F16:BF16 (what is F16), '*.norm.*=F32'", "[GLOB=][FROM:]TO");
  add_rules(
      command, "--transpose", [&rules](const std::string& glob) { rules.transpose(glob); },
      "exchange rows and columns", "GLOB");
  add_rules(
      command, "--quantize", [&rules](const std::string& glob) { rules.quantize(glob); },
      "to F8_E4M3 with one scale a tensor, under its name + _scale", "GLOB");
}

LoadRequest SelectionFlags::request() const {
  LoadRequest request = request_;
  for (const std::string& glob : rows_) request.rank.slices.push_back({.glob = glob, .dim = 0});
  for (const std::string& glob : columns_) request.rank.slices.push_back({.glob = glob, .dim = 1});
  return request;
}

}  // namespace sluice::cli
