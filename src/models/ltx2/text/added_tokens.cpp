#include "models/ltx2/text/added_tokens.h"

#include "models/ltx2/text/utf8.h"
#include "models/ltx2/text/word_characters.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace sluice::ltx2 {
namespace {

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word_character(last_code_point(text).value);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word_character(first_code_point(text).value);
}

std::size_t without_space_at_end(std::string_view text) {
  while (!text.empty()) {
    CodePoint last = last_code_point(text);
    if (!is_white_space(last.value)) break;
    text.remove_suffix(last.length);
  }
  return text.size();
}

std::size_t space_at_start(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    CodePoint first = first_code_point(text.substr(length));
    if (!is_white_space(first.value)) break;
    length += first.length;
  }
  return length;
}

}  // namespace

// The tokenizers library gives a token that the model does not know the number after the greatest so far, and
// does not look at the file's "id".  Where both agree there is nothing to choose; where they do not, the file
// is wrong.
std::vector<AddedToken> checked_added_tokens(std::vector<AddedToken> tokens, const Vocabulary& vocabulary) {
  std::vector<AddedToken> kept;
  kept.reserve(tokens.size());
  std::unordered_map<std::string_view, std::size_t> places;  // in `kept`, by content
  auto next = static_cast<TokenId>(vocabulary.size());
  for (AddedToken& token : tokens) {
    if (auto place = places.find(token.content); place != places.end()) {
      if (kept[place->second] == token) continue;
      throw Error(ErrorKind::bad_input,
                  fmt::format("added token '{}' is listed twice, differently", token.content));
    }
    TokenId expected = vocabulary.find(token.content).value_or(next);
    if (token.id != expected) {
      throw Error(ErrorKind::bad_input, fmt::format("added token '{}' has id {}, but it should be {}",
                                                    token.content, token.id, expected));
    }
    next = std::max(next, token.id + 1);
    kept.push_back(std::move(token));
    places.emplace(kept.back().content, kept.size() - 1);
  }
  return kept;
}

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens, std::span<const std::string> texts)
    : tokens_(std::move(tokens)) {
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) insert(texts[i], i);
}

void AddedTokenFinder::insert(std::string_view text, std::uint32_t token) {
  if (text.empty()) {
    throw Error(ErrorKind::bad_input, fmt::format("added token {} has no text", tokens_[token].id));
  }
  std::uint32_t node = 0;
  for (char byte : text) {
    std::uint32_t child = child_of(node, byte);
    if (child == 0) {
      child = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({.byte = byte, .sibling = nodes_[node].child});
      nodes_[node].child = child;
    }
    node = child;
  }
  if (nodes_[node].token != 0) {
    throw Error(ErrorKind::bad_input,
                fmt::format("added tokens '{}' and '{}' mean the same text",
                            tokens_[nodes_[node].token - 1].content, tokens_[token].content));
  }
  nodes_[node].token = token + 1;
}

std::uint32_t AddedTokenFinder::child_of(std::uint32_t node, char byte) const {
  std::uint32_t child = nodes_[node].child;
  while (child != 0 && nodes_[child].byte != byte) child = nodes_[child].sibling;
  return child;
}

std::optional<AddedTokenFinder::Match> AddedTokenFinder::next_match(std::string_view text,
                                                                    std::size_t from) const {
  for (std::size_t start = from; start < text.size(); ++start) {
    Match longest;
    std::uint32_t node = 0;
    for (std::size_t end = start; end < text.size(); ++end) {
      node = child_of(node, text[end]);
      if (node == 0) break;
      if (nodes_[node].token != 0) longest = {start, end + 1, nodes_[node].token - 1};
    }
    if (longest.end != 0) return longest;
  }
  return std::nullopt;
}

// A match that its own rule forbids is passed over whole; no shorter token is tried in its place (tokenizers,
// AddedVocabulary::find_matches).
std::vector<Piece> AddedTokenFinder::split(std::string_view text) const {
  std::vector<Piece> pieces;
  std::size_t done = 0;
  for (auto match = next_match(text, 0); match; match = next_match(text, match->end)) {
    const AddedToken& token = tokens_[match->token];
    auto [start, end, index] = *match;
    if (token.single_word && (ends_with_word(text.substr(0, start)) || starts_with_word(text.substr(end))))
      continue;
    if (token.lstrip) start = std::max(done, without_space_at_end(text.substr(0, start)));
    if (token.rstrip) end += space_at_start(text.substr(end));
    if (done < start) pieces.push_back({text.substr(done, start - done), std::nullopt});
    // White space that an earlier token has swallowed leaves nothing of a token that is white space itself.
    if (start < end) pieces.push_back({text.substr(start, end - start), token.id});
    done = end;
  }
  if (done < text.size()) pieces.push_back({text.substr(done), std::nullopt});
  return pieces;
}

}  // namespace sluice::ltx2
