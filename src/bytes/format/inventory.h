#pragma once
// What lies under a path, for people and programs to look at: a checkpoint, or a diffusers folder with one in
// each component's folder.  Headers only.

#include <sluice/checkpoint.h>

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace sluice::bytes {

struct Inventory {
  struct Part {
    std::string name;  // of the component; empty for a checkpoint by itself
    Checkpoint checkpoint;
  };
  std::vector<Part> parts;  // by name
  bool diffusers = false;
};

// `path`: as for Checkpoint::open, or a folder with a model_index.json.  Errors of Checkpoint::open, of all
// components in one.
Inventory take_inventory(const std::filesystem::path& path);

// One JSON object: {"kind": "checkpoint", "files", "metadata", "model_version", "warnings", "tensors"}, or
// {"kind": "diffusers folder", "components": {name: a checkpoint's object}}.  Written as it is made, a line a
// tensor, so that a hundred thousand of them need no memory.  Metadata that is JSON itself is shown as such.
// No control character stands in it but the ends of lines.
void write_json(const Inventory& inventory, std::ostream& out);

}  // namespace sluice::bytes
