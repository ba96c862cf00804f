#include "weights/quantize/partial_folder.h"

#include "base/file.h"
#include "base/output_name.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

namespace sluice::weights {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "quantization.json";
constexpr Bytes kMostManifestBytes = MiB(64);

Error cannot(const fs::path& path, std::string_view what, int error_number) {
  return Error(ErrorKind::io,
               fmt::format("{}: cannot {}: {}", path.string(), what, system_reason(error_number)),
               system_remedy(error_number));
}

bool is_empty_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) && fs::is_empty(path, ignored);
}

// --overwrite removes a folder with all that is in it: only one that holds a model.
bool holds_a_model(const fs::path& folder) {
  std::error_code ignored;
  const fs::directory_iterator entries(folder, ignored);
  return std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    const fs::path name = entry.path().filename();
    return name == kManifest || name == "model_index.json" || name.extension() == ".safetensors";
  });
}

void flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

// After a rename that failed with `error_number`, because a folder that is not empty has the name: it goes
// once the new one has it.
void replace_folder(const fs::path& made, const fs::path& target, int error_number) {
  if (error_number != ENOTEMPTY && error_number != EEXIST)
    throw cannot(target, "rename the finished folder", error_number);
  const fs::path old = target.string() + ".replaced.partial";
  std::error_code error;
  fs::remove_all(old, error);
  if (::rename(target.c_str(), old.c_str()) != 0) throw cannot(target, "move away the folder", errno);
  if (::rename(made.c_str(), target.c_str()) != 0) {
    error_number = errno;
    ::rename(old.c_str(), target.c_str());
    throw cannot(target, "rename the finished folder", error_number);
  }
  fs::remove_all(old, error);
}

}  // namespace

void check_target_folder(const fs::path& given, Existing existing) {
  const fs::path target = without_slash(given);
  if (target.empty()) throw Error(ErrorKind::usage, "the name of the output folder is empty", "give a name");
  std::error_code error;
  const fs::path parent = target.has_parent_path() ? target.parent_path() : ".";
  if (!fs::is_directory(parent, error)) {
    throw Error(ErrorKind::usage,
                fmt::format("{}: its folder {} does not exist", target.string(), parent.string()),
                "create the folder first");
  }
  if (::access(parent.c_str(), W_OK) != 0) throw cannot(target, "create a folder there", errno);
  if (!fs::exists(fs::symlink_status(target, error)) || is_empty_folder(target)) return;
  if (existing == Existing::refuse) {
    throw Error(ErrorKind::usage, fmt::format("{}: exists already", target.string()),
                "give another name, or --overwrite to replace it");
  }
  if (!fs::is_directory(fs::symlink_status(target, error)) || !holds_a_model(target)) {
    throw Error(ErrorKind::usage,
                fmt::format("{}: is no folder of a model, and is not overwritten", target.string()),
                "give another name, or remove it yourself");
  }
}

PartialFolder::PartialFolder(fs::path target, QuantizationManifest manifest)
    : target_(without_slash(target)), path_(target_.string() + ".partial"), manifest_(std::move(manifest)) {
  std::error_code error;
  fs::create_directory(path_, error);
  if (error) throw cannot(path_, "create the folder", error.value());
  take_lock();
  try {
    if (fs::exists(path_ / kManifest)) take_up();
    remove_leftovers();
    save(Times::kept);
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

PartialFolder::~PartialFolder() {
  std::error_code ignored;
  if (!committed_ && manifest_.files.empty()) fs::remove_all(path_, ignored);
  ::close(lock_);
}

// The system lets go of it however the process ends.
void PartialFolder::take_lock() {
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) throw cannot(path_, "open the folder", errno);
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(lock_);
  throw Error(ErrorKind::usage, fmt::format("{}: another run writes this folder now", path_.string()),
              "wait for it, or give another output");
}

void PartialFolder::take_up() {
  const fs::path file = path_ / kManifest;
  QuantizationManifest begun = parse_manifest(read_text(file, kMostManifestBytes), file.string());
  if (begun.files.empty()) return;  // whatever it was, nothing is lost
  if (const std::string differs = difference(begun, manifest_); !differs.empty()) {
    throw Error(ErrorKind::usage, fmt::format("{}: was begun {}", path_.string(), differs),
                "run with what it was begun with, or remove the folder to begin again");
  }
  for (FinishedFile& done : begun.files) {
    std::error_code error;
    if (fs::file_size(path_ / done.name, error) == done.size && !error) manifest_.files.push_back(done);
  }
}

void PartialFolder::remove_leftovers() const {
  const auto any = [](std::string_view) { return true; };
  remove_abandoned(path_, any);
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    if (entry.is_directory()) remove_abandoned(entry.path(), any);
  }
}

const FinishedFile* PartialFolder::finished(const std::string& name) const {
  const auto found = std::ranges::find(manifest_.files, name, &FinishedFile::name);
  return found == manifest_.files.end() ? nullptr : &*found;
}

void PartialFolder::add(FinishedFile file) {
  manifest_.files.push_back(std::move(file));
  save(Times::kept);
}

void PartialFolder::save(Times times) const {
  write_text(path_ / kManifest, to_json(manifest_, times));
}

void PartialFolder::commit(Existing existing) {
  check_target_folder(target_, existing);  // somebody may have made it meanwhile
  save(Times::left_out);
  if (::rename(path_.c_str(), target_.c_str()) != 0) replace_folder(path_, target_, errno);
  committed_ = true;
  flush_folder(target_.parent_path());
}

}  // namespace sluice::weights
