#include "pipeline/work_identity.h"

#include "base/cpu_path.h"
#include "bytes/format/checksum.h"
#include "pipeline/account.h"
#include "pipeline/file_fingerprint.h"
#include "pipeline/json_text.h"

#include <sluice/checkpoint.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <array>
#include <functional>
#include <set>

namespace sluice::pipeline {
namespace {

using nlohmann::json;

json samples(const PreparedRun& run) {
  json found = json::object();
  auto add = [&](const std::string& prefix, const Checkpoint& checkpoint) {
    for (const Shard& shard : checkpoint.shards())
      found[prefix + shard.path.filename().string()] = sampled_checksum(shard);
  };
  const bool folder = run.models.files.layout() == ltx2::Layout::diffusers_folder;
  for (const Checkpoint& checkpoint : run.models.files.checkpoints())
    add(folder ? checkpoint.path().filename().string() + "/" : "", checkpoint);
  if (run.encoder) add("text_encoder/", run.encoder->table.checkpoint);
  return found;
}

std::string checksum_of(const at::Tensor& tensor) {
  const at::Tensor values = tensor.contiguous();
  bytes::Checksum checksum;
  checksum.add({static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()});
  return checksum.text();
}

json injected(const Injection& injection) {
  json found = json::object();
  auto add = [&](const char* name, const at::Tensor& tensor) {
    if (tensor.defined()) found[name] = checksum_of(tensor);
  };
  auto add_prompt = [&](const std::string& name, const std::optional<InjectedPrompt>& prompt) {
    if (!prompt) return;
    add((name + "_embeds").c_str(), prompt->embeds);
    add((name + "_attention_mask").c_str(), prompt->mask);
  };
  add("video_noise", injection.video_noise);
  add("audio_noise", injection.audio_noise);
  add_prompt("prompt", injection.positive);
  add_prompt("negative_prompt", injection.negative);
  return found;
}

// A value as it may stand in a message.
std::string shown(const json& value) {
  constexpr std::size_t kLongest = 60;
  std::string text = value.is_null() ? "none" : json_text(value, JsonLayout::one_line);
  if (text.size() <= kLongest) return text;
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // between characters
  return text.substr(0, end) + "…";
}

// Keys of both, each as a pair of values (null where it is missing).
template <typename Visit>
void each_difference(const json& there, const json& here, Visit visit) {
  std::set<std::string> keys;
  for (const json* side : {&there, &here}) {
    for (const auto& [key, value] : side->items()) keys.insert(key);
  }
  for (const std::string& key : keys) {
    const json a = there.value(key, json()), b = here.value(key, json());
    if (a != b) visit(key, a, b);
  }
}

}  // namespace

json work_identity(const PreparedRun& run) {
  json versions_and_cpu = versions();
  versions_and_cpu["CPU instructions"] = std::string(name(cpu_path()));
  json request = settled_request(run);
  request["count"] = run.request.count;
  const json identity = {{"request", request},
                         {"headers", fingerprints(run.models, run.encoder.get()).at("headers")},
                         {"samples", samples(run)},
                         {"injected", injected(run.injection)},
                         {"made by", versions_and_cpu}};
  return json::parse(json_text(identity));  // as it comes back from a file
}

std::vector<std::string> identity_differences(const json& there, const json& here) {
  std::vector<std::string> lines;
  auto part = [](const json& identity, const char* name) { return identity.value(name, json::object()); };
  // Down to what differs inside of lists and objects.
  std::function<void(const std::string&, const json&, const json&)> values =
      [&](const std::string& key, const json& a, const json& b) {
        if (a.is_object() && b.is_object()) {
          each_difference(a, b, [&](const std::string& inner, const json& c, const json& d) {
            values(key + "." + inner, c, d);
          });
        } else if (a.is_array() && b.is_array() && a.size() == b.size()) {
          for (std::size_t i = 0; i < a.size(); ++i)
            if (a[i] != b[i]) values(fmt::format("{}[{}]", key, i), a[i], b[i]);
        } else {
          lines.push_back(fmt::format("{} {} there, {} here", key, shown(a), shown(b)));
        }
      };
  std::set<std::string> files;
  auto file = [&](const std::string& key, const json&, const json&) { files.insert(key); };
  each_difference(part(there, "request"), part(here, "request"), values);
  each_difference(part(there, "headers"), part(here, "headers"), file);
  each_difference(part(there, "samples"), part(here, "samples"), file);
  for (const std::string& name : files) lines.push_back(fmt::format("another model file {}", name));
  each_difference(part(there, "injected"), part(here, "injected"),
                  [&](const std::string& key, const json&, const json&) {
                    lines.push_back(fmt::format("another injected {}", key));
                  });
  each_difference(part(there, "made by"), part(here, "made by"), values);
  return lines;
}

}  // namespace sluice::pipeline
