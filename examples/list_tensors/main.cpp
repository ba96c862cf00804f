// list_tensors CHECKPOINT: a safetensors file, an index.json or a folder; prints a line for each tensor and
// the first bytes of the smallest one, to show both what opening knows and how data is read.
#include <sluice/checkpoint.h>
#include <sluice/error.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace {

void list(const sluice::Checkpoint& checkpoint) {
  for (const sluice::TensorInfo& tensor : checkpoint.tensors()) {
    std::printf("%-10s %-20s %12s  %s\n", std::string(dtype_name(tensor.dtype)).c_str(),
                sluice::format_shape(tensor.shape).c_str(), sluice::format_bytes(tensor.size).c_str(),
                tensor.name.c_str());
  }
  for (const std::string& warning : checkpoint.warnings()) std::printf("warning: %s\n", warning.c_str());
}

void show_smallest(const sluice::Checkpoint& checkpoint) {
  const auto& tensors = checkpoint.tensors();
  auto smallest = std::ranges::min_element(tensors, {}, &sluice::TensorInfo::size);
  if (smallest == tensors.end()) return;
  std::vector<std::byte> bytes(smallest->size);
  checkpoint.read(*smallest, bytes);
  std::printf("%s:", smallest->name.c_str());
  for (std::size_t i = 0; i < std::min<std::size_t>(bytes.size(), 16); ++i)
    std::printf(" %02x", unsigned(bytes[i]));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: list_tensors CHECKPOINT\n");
    return 2;
  }
  sluice::Checkpoint checkpoint = sluice::Checkpoint::open(argv[1]);
  list(checkpoint);
  show_smallest(checkpoint);
  return 0;
} catch (const sluice::Error& error) {
  std::fprintf(stderr, "list_tensors: %s\n  try: %s\n", error.what(), error.hint().c_str());
  return error_kind_info(error.kind()).exit_code;
}
