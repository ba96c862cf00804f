#pragma once
// A sink that keeps everything, and checks what a sink may rely on.

#include <sluice/load.h>

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace sluice::test {

enum class OwnMemory { all, none, every_second };

class CollectingSink final : public TensorSink {
 public:
  CollectingSink(const LoadPlan& plan, OwnMemory memory) : plan_(plan), memory_(memory) {
    for (const TargetTensor& target : plan.targets()) contents_.emplace_back(target.size, '\xee');
  }

  std::span<std::byte> destination(std::size_t target) override {
    const bool own = memory_ == OwnMemory::all || (memory_ == OwnMemory::every_second && target % 2 == 0);
    return own ? std::as_writable_bytes(std::span(contents_[target])) : std::span<std::byte>();
  }

  void take(std::size_t target, Bytes offset, std::span<const std::byte> bytes) override {
    EXPECT_FALSE(complete_.contains(target));
    EXPECT_EQ(offset, taken_[target]) << plan_.targets()[target].name;
    EXPECT_GE(target, last_taken_) << "targets came interleaved or out of order";
    last_taken_ = target;
    taken_[target] += bytes.size();
    std::copy(
        bytes.begin(), bytes.end(),
        std::as_writable_bytes(std::span(contents_[target])).begin() + static_cast<std::ptrdiff_t>(offset));
  }

  void complete(std::size_t target) override { EXPECT_TRUE(complete_.insert(target).second); }

  bool all_complete() const { return complete_.size() == contents_.size(); }
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> by_name;
    for (std::size_t i = 0; i < contents_.size(); ++i) by_name[plan_.targets()[i].name] = contents_[i];
    return by_name;
  }

 private:
  const LoadPlan& plan_;
  OwnMemory memory_;
  std::vector<std::string> contents_;
  std::map<std::size_t, Bytes> taken_;
  std::set<std::size_t> complete_;
  std::size_t last_taken_ = 0;
};

}  // namespace sluice::test
