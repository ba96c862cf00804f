// The reading of scheduler_config.json, see schedule.h.
#include "sampling/schedule.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluice::sampling {
namespace {

using nlohmann::json;

constexpr const char* kFile = "scheduler config";

Error wrong_value(const std::string& key, const json& value, std::string_view wanted) {
  return Error(ErrorKind::bad_input, fmt::format("{}: {} is {}, not {}", kFile, key, value.dump(), wanted),
               "fetch the scheduler_config.json that was published with the model");
}

void read(const json& object, const std::string& key, bool& to) {
  if (!object.contains(key)) return;
  if (!object[key].is_boolean()) throw wrong_value(key, object[key], "true or false");
  to = object[key].get<bool>();
}

void read(const json& object, const std::string& key, double& to) {
  if (!object.contains(key)) return;
  if (!object[key].is_number()) throw wrong_value(key, object[key], "a number");
  to = object[key].get<double>();
}

void read(const json& object, const std::string& key, std::int64_t& to) {
  if (!object.contains(key)) return;
  if (!object[key].is_number_integer()) throw wrong_value(key, object[key], "a whole number");
  to = object[key].get<std::int64_t>();
}

// Options of the reference's class that the LTX-2 models do not use.  Keys may be missing.
void refuse_unsupported(const json& object) {
  const json only_value = {{"use_karras_sigmas", false},   {"use_exponential_sigmas", false},
                           {"use_beta_sigmas", false},     {"invert_sigmas", false},
                           {"stochastic_sampling", false}, {"time_shift_type", "exponential"},
                           {"num_train_timesteps", 1000}};
  for (const auto& [key, value] : only_value.items()) {
    auto found = object.find(key);
    if (found == object.end() || found->is_null() || *found == value) continue;
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: {} is {}; only {} is supported", kFile, key, found->dump(), value.dump()),
                "use the scheduler_config.json that was published with the model");
  }
}

void check_terminal(const SchedulerConfig& config) {
  if (!config.shift_terminal || (*config.shift_terminal > 0.0 && *config.shift_terminal < 1.0)) return;
  throw wrong_value("shift_terminal", *config.shift_terminal, "between 0 and 1");
}

}  // namespace

SchedulerConfig parse_scheduler_config(std::string_view text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    throw Error(ErrorKind::bad_input, fmt::format("{}: not a JSON object", kFile),
                "fetch the scheduler_config.json that was published with the model");
  refuse_unsupported(object);
  SchedulerConfig config;
  read(object, "use_dynamic_shifting", config.use_dynamic_shifting);
  read(object, "base_shift", config.base_shift);
  read(object, "max_shift", config.max_shift);
  read(object, "base_image_seq_len", config.base_image_seq_len);
  read(object, "max_image_seq_len", config.max_image_seq_len);
  read(object, "shift", config.shift);
  if (config.base_image_seq_len == config.max_image_seq_len)
    throw wrong_value("max_image_seq_len", config.max_image_seq_len, "different from base_image_seq_len");
  if (object.contains("shift_terminal") && !object["shift_terminal"].is_null()) {
    double terminal = 0.0;
    read(object, "shift_terminal", terminal);
    if (terminal != 0.0) config.shift_terminal = terminal;  // the reference takes 0 for "none"
  }
  check_terminal(config);
  return config;
}

}  // namespace sluice::sampling
