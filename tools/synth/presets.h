#pragma once
// The built-in sizes, in the form read_sizes() reads.

namespace sluice::synth {

extern const char* const kPublishedConfig;
extern const char* const kTinyConfig;

}  // namespace sluice::synth
