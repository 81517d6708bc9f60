#include "sequence/chain_check.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/finite.hpp"

namespace hinge {
namespace {

void require_chain(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument(message);
}

void require_offsets(const std::vector<index_t>& offsets, index_t groups, std::size_t entries, const char* what) {
  const bool fits = static_cast<index_t>(offsets.size()) == groups + 1 && rising(offsets.data(), groups) &&
                    offsets.back() == static_cast<index_t>(entries);
  require_chain(fits, std::string("the ") + what + " of a chain model do not fit its attributes");
}

void require_below(const std::vector<std::int32_t>& codes, index_t bound, const char* what) {
  const bool inside = std::all_of(codes.begin(), codes.end(), [&](std::int32_t c) { return c >= 0 && c < bound; });
  require_chain(inside, std::string("the ") + what + " of a chain model lie outside its labels");
}

// Checks that every token reaches a root. A token is `done` if it does, and `on the way` while its ancestors are
// visited.
void check_parents(const std::int32_t* parent, index_t length, index_t sequence) {
  const std::string where = "parents[" + std::to_string(sequence) + "]";
  for (index_t t = 0; t < length; ++t)
    require_chain(parent[t] >= -1 && parent[t] < length && parent[t] != t,
                  where + "[" + std::to_string(t) + "] is " + std::to_string(parent[t]) +
                      "; it must be the position of another token of that sequence, 0 to " +
                      std::to_string(length - 1) + ", or -1 for a root");
  enum : char { unseen, on_the_way, done };
  std::vector<char> state(length, unseen);
  for (index_t t = 0; t < length; ++t) {
    index_t at = t;
    while (at >= 0 && state[at] == unseen) {
      state[at] = on_the_way;
      at = parent[at];
    }
    require_chain(at < 0 || state[at] == done,
                  where + " has a cycle: token " + std::to_string(at) + " is its own ancestor; a tree has a root (-1)");
    for (at = t; at >= 0 && state[at] == on_the_way; at = parent[at]) state[at] = done;
  }
}

}  // namespace

void check_tokens(const Tokens& x, index_t starts, index_t pointers, index_t entries, index_t values, index_t parents) {
  require_chain(
      starts == x.sequences + 1 && starts > 0 && pointers == x.tokens + 1 && pointers > 0 && x.attributes >= 0,
      "X has no room for its sequences");
  require_chain(rising(x.start, x.sequences) && x.start[x.sequences] == x.tokens,
                "the sequences of X do not cover its tokens");
  require_chain(rising(x.indptr, x.tokens) && x.indptr[x.tokens] <= entries,
                "the attributes of X do not cover its tokens");
  require_chain(values < 0 || values == entries, "X must have one value per attribute");
  require_chain(parents < 0 || parents == x.tokens, "parents must have one entry per token of X");
  require_chain(std::all_of(x.attribute, x.attribute + x.indptr[x.tokens],
                            [&](std::int32_t a) { return a >= 0 && a < x.attributes; }),
                "an attribute of X is not one the model knows");
  if (x.parent)
    for (index_t i = 0; i < x.sequences; ++i) check_parents(x.parent + x.start[i], x.length(i), i);
}

void check_layout(const Layout& layout) {
  require_chain(layout.attributes >= 0 && layout.labels > 0, "a chain model needs at least one label");
  if (!layout.begin.empty() || !layout.label.empty())
    require_offsets(layout.begin, layout.attributes, layout.label.size(), "weights");
  if (!layout.cross.empty() || !layout.cross_pair.empty())
    require_offsets(layout.cross, layout.attributes, layout.cross_pair.size(), "weights of label pairs");
  require_below(layout.label, layout.labels, "labels");
  require_below(layout.pair, layout.labels * layout.labels, "label pairs");
  require_below(layout.cross_pair, layout.labels * layout.labels, "label pairs");
  require_below(layout.triple, layout.labels * layout.labels * layout.labels, "label triples");
}

void check_labels(const Tokens& x, const std::int32_t* y, index_t size, index_t labels) {
  require_chain(size == x.tokens, "y must have one label per token of X");
  require_chain(std::all_of(y, y + size, [&](std::int32_t c) { return c >= 0 && c < labels; }),
                "y has a label that the model does not know");
}

}  // namespace hinge
