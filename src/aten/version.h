#pragma once
// Which LibTorch this program was built against, for reports and metadata.

namespace sluice::aten {

const char* version();  // "2.13.0"

}  // namespace sluice::aten
