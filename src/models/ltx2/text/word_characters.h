#pragma once
// Word characters as `\w` means them in Unicode 16: Alphabetic, Mark, Decimal_Number, Connector_Punctuation
// and Join_Control.  Only an added token with `single_word` asks.

namespace sluice::ltx2 {

bool is_word_character(char32_t code_point);

}  // namespace sluice::ltx2
