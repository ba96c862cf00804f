#include <sluice/sinks.h>

#include <utility>

namespace sluice {
namespace {

class SlabSink final : public TensorSink {
 public:
  SlabSink(const LoadPlan& plan, Slab& slab) : plan_(plan), layout_(lay_out(plan)), slab_(slab) {
    slab.reserve(layout_.size);
  }

  std::span<std::byte> destination(std::size_t target) override {
    return slab_.bytes().subspan(layout_.offsets[target], plan_.targets()[target].size);
  }
  bool destinations_are_fresh() const override { return slab_.touched() < layout_.size; }
  void take(std::size_t, Bytes, std::span<const std::byte>) override {}  // every target has its place

  Bytes size() const { return layout_.size; }

 private:
  const LoadPlan& plan_;
  const SlabLayout layout_;
  Slab& slab_;
};

}  // namespace

const TensorDictionary::Entry* TensorDictionary::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

TensorDictionary load_dictionary(const LoadPlan& plan, std::shared_ptr<Slab> slab, const ReadOptions& options,
                                 LoadReport* report, Progress* progress, const CancelToken* cancel) {
  TensorDictionary dictionary;
  dictionary.slab_ = slab ? std::move(slab) : std::make_shared<Slab>();
  SlabSink sink(plan, *dictionary.slab_);
  LoadReport done = load(plan, sink, options, progress, cancel);
  dictionary.slab_->mark_touched(sink.size());
  if (report != nullptr) *report = std::move(done);
  dictionary.entries_.reserve(plan.targets().size());
  for (std::size_t i = 0; i < plan.targets().size(); ++i) {
    dictionary.by_name_.emplace(plan.targets()[i].name, i);
    dictionary.entries_.push_back({plan.targets()[i], sink.destination(i)});
  }
  return dictionary;
}

}  // namespace sluice
