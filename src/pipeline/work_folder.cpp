#include "pipeline/work_folder.h"

#include "base/file.h"
#include "base/output_name.h"
#include "bytes/format/checksum.h"
#include "pipeline/json_text.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace sluice::pipeline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kMarker = "sluice-work.json";
constexpr Bytes kLargestMarker = MiB(4);

std::string checksum_of(const json& content) {
  bytes::Checksum checksum;
  const std::string text = content.dump(-1, ' ', false, json::error_handler_t::replace);
  checksum.add(std::as_bytes(std::span(text)));
  return checksum.text();
}

json marker_json(const WorkMarker& marker) {
  json content = {{"identity", marker.identity},
                  {"outputs", marker.outputs},
                  {"frame_folders", marker.frame_folders},
                  {"finishing", marker.finishing},
                  {"made_folder", marker.made_folder}};
  content["checksum"] = checksum_of(content);
  return content;
}

// Empty where the text is not what marker_json() gave.
std::optional<WorkMarker> parse_marker(const std::string& text) {
  try {
    json content = json::parse(text);
    const json checksum = content.at("checksum");
    content.erase("checksum");
    if (checksum != checksum_of(content)) return std::nullopt;
    return WorkMarker{.identity = content.at("identity"),
                      .outputs = content.at("outputs"),
                      .frame_folders = content.at("frame_folders"),
                      .finishing = content.at("finishing"),
                      .made_folder = content.at("made_folder")};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

bool is_state(std::string_view name) {
  constexpr std::array<std::string_view, 5> kBegins = {"contexts", "latents", "refined", "upsampled",
                                                       "sound"};
  return name.ends_with(".safetensors") &&
         std::ranges::any_of(kBegins, [&](std::string_view begin) { return name.starts_with(begin); });
}

// Outputs that a killed run left under temporary names.
void remove_unfinished(const WorkMarker& marker) {
  for (const std::string& name : marker.outputs) {
    const fs::path output = name;
    remove_abandoned(output.parent_path(),
                     [&](std::string_view target) { return target == output.filename().native(); });
  }
  for (const std::string& folder : marker.frame_folders)
    remove_abandoned(folder, [](std::string_view name) { return name.starts_with("frame_"); });
}

}  // namespace

std::string recorded_name(const fs::path& output) {
  const json name = full_name(without_slash(output)).native();
  return json::parse(json_text(name, JsonLayout::one_line));
}

fs::path default_work_folder(const Outputs& outputs) {
  for (const fs::path& path :
       {outputs.video, outputs.wav, outputs.frames_dir, outputs.latents, outputs.trace}) {
    if (!path.empty()) return without_slash(path).native() + kWorkEnding;
  }
  return {};
}

WorkFolder::WorkFolder(fs::path folder) : folder_(without_slash(folder)) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(folder_, ignored))) {
    // A folder is made where a file could be.
    check_target(folder_, Existing::refuse);
    return;
  }
  if (!fs::is_directory(folder_, ignored)) {
    throw Error(ErrorKind::usage, fmt::format("{}: is no folder to keep work in", folder_.string()),
                "name another one with --work-dir");
  }
  if (fs::exists(folder_ / kMarker, ignored)) {
    marker_ = parse_marker(read_text(folder_ / kMarker, kLargestMarker));
    damaged_ = !marker_;
  } else if (!fs::is_empty(folder_, ignored)) {
    throw Error(ErrorKind::usage,
                fmt::format("{}: is not empty, and no folder that sluice keeps work in", folder_.string()),
                "name another one with --work-dir");
  }
}

WorkFolder::~WorkFolder() {
  if (lock_ >= 0) ::close(lock_);
}

WorkFolder::WorkFolder(WorkFolder&& other) noexcept
    : folder_(std::move(other.folder_)),
      marker_(std::move(other.marker_)),
      damaged_(other.damaged_),
      lock_(std::exchange(other.lock_, -1)) {}

bool WorkFolder::take() {
  if (lock_ >= 0) return true;
  const int descriptor = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return true;  // not there yet, or begin() will say why
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor);
    return false;
  }
  lock_ = descriptor;  // file systems without locks: held by nobody, used all the same
  return true;
}

void WorkFolder::begin(WorkMarker marker) {
  std::error_code failed;
  const bool made = fs::create_directory(folder_, failed);
  if (failed) {
    throw Error(
        ErrorKind::io,
        fmt::format("{}: cannot make the folder: {}", folder_.string(), system_reason(failed.value())),
        system_remedy(failed.value()));
  }
  if (!take()) throw Error(ErrorKind::io, fmt::format("{}: another run works with it", folder_.string()));
  if (marker_) remove_unfinished(*marker_);
  marker.made_folder = made || (marker_ && marker_->made_folder);
  remove_files();
  marker_ = std::move(marker);
  try {
    write_marker(Flush::yes);
  } catch (...) {  // nothing is to stay that is not known for what it is
    marker_.reset();
    if (made) fs::remove(folder_, failed);
    throw;
  }
}

void WorkFolder::go_on(const WorkMarker& marker) {
  remove_unfinished(*marker_);
  for (const std::string& output : marker.outputs) {
    if (std::ranges::find(marker_->outputs, output) == marker_->outputs.end())
      marker_->outputs.push_back(output);
  }
  marker_->frame_folders = marker.frame_folders;
  write_marker(Flush::yes);
}

void WorkFolder::finishing(const fs::path& output) {
  const std::string name = recorded_name(output);
  if (std::ranges::find(marker_->finishing, name) != marker_->finishing.end()) return;
  marker_->finishing.push_back(name);
  write_marker(Flush::no);
}

void WorkFolder::write_marker(Flush flush) const {
  write_text(folder_ / kMarker, json_text(marker_json(*marker_)) + "\n", flush);
}

void WorkFolder::remove_files() const {
  std::error_code ignored;
  std::vector<fs::path> state;
  for (fs::directory_iterator entry(folder_, ignored), end; entry != end; entry.increment(ignored)) {
    if (is_state(entry->path().filename().string())) state.push_back(entry->path());
  }
  for (const fs::path& file : state) fs::remove(file, ignored);
  remove_abandoned(folder_, [](std::string_view name) { return is_state(name) || name == kMarker; });
}

void WorkFolder::remove() {
  if (!marker_) return;
  const bool made = marker_->made_folder;
  remove_files();
  marker_.reset();
  std::error_code ignored;
  fs::remove(folder_ / kMarker, ignored);
  if (made) fs::remove(folder_, ignored);  // only an empty folder goes
}

}  // namespace sluice::pipeline
