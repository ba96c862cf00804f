#include "base/cpu_path.h"

#include <gmock/gmock.h>

namespace sluice {
namespace {

using ::testing::Contains;

TEST(CpuPath, is_always_at_least_scalar) {
  EXPECT_EQ(cpu_paths().front(), CpuPath::scalar);
}

TEST(CpuPath, is_one_of_those_that_this_processor_can_run) {
  EXPECT_THAT(cpu_paths(), Contains(cpu_path()));
}

TEST(CpuPath, can_be_chosen) {
  const CpuPath before = cpu_path();
  for (const CpuPath path : cpu_paths()) {
    set_cpu_path(path);

    EXPECT_EQ(cpu_path(), path);
  }
  set_cpu_path(before);
}

}  // namespace
}  // namespace sluice
