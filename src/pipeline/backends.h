#pragma once
// One read backend a checkpoint, shared by all components that lie in it, and the choice of `auto`: a mapping
// where the system grants one (weights are then computed from where they lie), reading otherwise.

#include "bytes/read_backend.h"
#include "weights/weight_source.h"

#include <sluice/sluice.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace sluice::pipeline {

class Backends {
 public:
  // `before_each_group` is called whenever a model asks for weights, and may throw to stop it.
  explicit Backends(ReadBackend choice, std::function<void()> before_each_group = {})
      : choice_(choice), before_each_group_(std::move(before_each_group)) {}

  // Error(io) if `mmap` was asked for and the system refuses.
  std::unique_ptr<weights::WeightSource> source(const weights::ComponentTable& table);

  // Error(corrupt_file) if any file changed since it was opened.
  void check() const;

  Bytes bytes_read() const;
  Bytes page_cache() const;  // bytes of the checkpoints' files that the system holds in memory now

  std::string chosen() const;  // "mmap"
  const std::string& reason() const { return reason_; }

 private:
  std::shared_ptr<const bytes::ReadBackend> backend_for(const Checkpoint& checkpoint);

  struct Open {
    Checkpoint checkpoint;
    std::shared_ptr<const bytes::ReadBackend> backend;
  };

  ReadBackend choice_;
  std::function<void()> before_each_group_;
  std::string reason_ = "asked for";
  std::map<std::string, Open> open_;  // by path
};

}  // namespace sluice::pipeline
