#include "synth/write.h"

#include "base/file.h"
#include "bytes/format/writer.h"
#include "synth/fill.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace sluice::synth {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kPiece = MiB(4);          // fits the second-level caches of most machines twice
constexpr Bytes kHeaderReserve = KiB(1);  // a tensor's share of header and index, generously

fs::path existing_parent(fs::path path) {
  while (!path.empty() && !fs::exists(path)) path = path.parent_path();
  return path.empty() ? fs::current_path() : path;
}

std::set<fs::path> folders(const Plan& plan) {
  std::set<fs::path> all;
  for (const PlannedFile& file : plan.files) all.insert(file.path.parent_path());
  for (const PlannedText& text : plan.texts) all.insert(text.path.parent_path());
  return all;
}

void check_space(const Plan& plan) {
  const Bytes needed = plan.data_size() + plan.tensors() * kHeaderReserve;
  const fs::path folder = existing_parent(fs::absolute(plan.files.front().path));
  const Bytes available = fs::space(folder).available;
  if (needed <= available) return;
  throw Error(ErrorKind::does_not_fit,
              fmt::format("{}: not enough disk space: needs {}, {} available", folder.string(),
                          format_bytes(needed), format_bytes(available)),
              "write to another disk, or fewer --blocks or --components");
}

bool is_weight_file(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
}

void remove_earlier_layout(const Plan& plan) {
  if (plan.texts.empty()) return;  // a single file replaces only itself
  for (const fs::path& folder : folders(plan)) {
    if (!fs::exists(folder)) continue;
    std::vector<fs::path> earlier;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (is_weight_file(entry.path())) earlier.push_back(entry.path());
    }
    for (const fs::path& path : earlier) fs::remove(path);
  }
}

void write_tensor(bytes::SafetensorsWriter& writer, const PlannedTensor& tensor, std::uint64_t seed,
                  std::vector<std::byte>& piece) {
  const Fill fill = choose_fill(tensor.component, tensor.source, seed);
  const Bytes element = dtype_bits(tensor.dtype) / 8;
  const Bytes size = tensor.size();
  for (Bytes at = 0; at < size; at += kPiece) {
    const std::span<std::byte> part(piece.data(), std::min(kPiece, size - at));
    generate(fill, tensor.dtype, static_cast<std::int64_t>(at / element), part);
    writer.append(part);
  }
}

void write_weights(const PlannedFile& file, std::uint64_t seed, std::vector<std::byte>& piece) {
  std::vector<bytes::TensorSpec> specs;
  for (const PlannedTensor& tensor : file.tensors)
    specs.push_back({tensor.name, tensor.dtype, tensor.source.shape});
  bytes::SafetensorsWriter writer(file.path, std::move(specs), file.metadata);
  for (const PlannedTensor& tensor : file.tensors) write_tensor(writer, tensor, seed, piece);
  writer.finish();
}

void write_text(const PlannedText& text) {
  TemporaryFile temporary(text.path);
  File file = File::open_for_writing(temporary.path());
  write_all(file, std::as_bytes(std::span(text.text)), text.path);
  temporary.commit();
}

}  // namespace

void check_plan(const Plan& plan, Existing existing) {
  if (plan.files.empty()) {
    throw Error(ErrorKind::usage, "nothing to write", "name at least one of the components");
  }
  const bool folder_layout = !plan.texts.empty();  // its folders may be made, those of a single file not
  for (const PlannedFile& file : plan.files) {
    if (!folder_layout || fs::exists(file.path.parent_path())) check_target(file.path, existing);
  }
  for (const fs::path& folder : folders(plan)) {
    if (existing == Existing::refuse && folder_layout && fs::exists(folder) && !fs::is_empty(folder)) {
      throw Error(ErrorKind::usage, fmt::format("{}: the folder is not empty", folder.string()),
                  "name another folder, or replace its weights with --overwrite");
    }
  }
  check_space(plan);
}

void write_plan(const Plan& plan, std::uint64_t seed, const FileObserver& observer) {
  remove_earlier_layout(plan);
  for (const fs::path& folder : folders(plan)) {
    if (!folder.empty()) fs::create_directories(folder);
  }
  std::vector<std::byte> piece(kPiece);
  for (const PlannedFile& file : plan.files) {
    write_weights(file, seed, piece);
    if (observer) observer(file.path, fs::file_size(file.path));
  }
  for (const PlannedText& text : plan.texts) write_text(text);
  for (const PlannedCopy& copy : plan.copies)
    fs::copy_file(copy.from, copy.to, fs::copy_options::overwrite_existing);
}

}  // namespace sluice::synth
