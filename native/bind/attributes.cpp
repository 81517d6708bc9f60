#include "bind/attributes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "core/pool.hpp"
#include "core/random.hpp"

namespace hinge {
namespace {

using namespace nb::literals;

// The characters of a name as UTF-8. Only functions of Python's stable ABI are used here. The string caches and owns
// the characters; where that is impossible (lone surrogates), `bytes` owns them.
struct Text {
  const char* data = nullptr;
  std::size_t size = 0;

  bool operator==(const Text& other) const {
    return size == other.size && (data == other.data || std::memcmp(data, other.data, size) == 0);
  }
};

Text text_of(PyObject* name, nb::object& bytes) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(name, &size);
  if (!data) {
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nb::python_error();
    PyErr_Clear();
    bytes = nb::steal(PyUnicode_AsEncodedString(name, "utf-8", "surrogatepass"));
    if (!bytes.is_valid()) throw nb::python_error();
    data = PyBytes_AsString(bytes.ptr());
    size = PyBytes_Size(bytes.ptr());
  }
  return {data, static_cast<std::size_t>(size)};
}

// Maps strings to numbers 0, 1, ... in order of insertion. Open addressing: a dictionary lookup takes four reads that
// miss the cache, this one two, and both can be prefetched. The hash is computed here, from the characters: it only
// reads, so several threads may look up names at once, and it is seeded with a secret, so that collisions cannot be
// chosen.
class AttributeIndex {
 public:
  AttributeIndex() : slots_(1024) {}
  AttributeIndex(const AttributeIndex&) = delete;
  AttributeIndex& operator=(const AttributeIndex&) = delete;

  static std::uint64_t hash(const Text& name) {
    static const std::uint64_t secret = mix64((std::uint64_t{std::random_device{}()} << 32) ^ std::random_device{}());
    const char* text = name.data;
    std::size_t bytes = name.size;
    std::uint64_t h = secret ^ bytes, word = 0;
    for (; bytes >= sizeof(word); bytes -= sizeof(word), text += sizeof(word)) {
      std::memcpy(&word, text, sizeof(word));
      h = mix64(h ^ word);
    }
    word = 0;
    std::memcpy(&word, text, bytes);
    return mix64(h ^ word);
  }

  void prefetch(std::uint64_t hash) const { __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]); }
  void prefetch_name(std::uint64_t hash) const {
    const Slot& slot = slots_[hash & (slots_.size() - 1)];
    if (slot.number >= 0) __builtin_prefetch(slot.text.data);
  }

  // The number of a name, -1 if it has none.
  std::int32_t find(const Text& text, std::uint64_t hash) const { return slots_[slot(text, hash)].number; }

  // The number of a name, the next one if it has none.
  std::int32_t add(nb::handle name, const Text& text, std::uint64_t hash) {
    const std::size_t at = slot(text, hash);
    if (slots_[at].number >= 0) return slots_[at].number;
    const auto number = static_cast<std::int32_t>(names_.size());
    nb::object bytes;
    const Text kept = text_of(name.ptr(), bytes);
    if (bytes.is_valid()) bytes_.push_back(std::move(bytes));
    names_.push_back(nb::borrow(name));
    slots_[at] = {hash, kept, number};
    if (2 * names_.size() > slots_.size()) widen();
    return number;
  }

  nb::list names() const {
    nb::list list;
    for (const nb::object& name : names_) list.append(name);
    return list;
  }
  std::size_t size() const { return names_.size(); }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    Text text;
    std::int32_t number = -1;  // -1: the slot is free
  };

  // The slot of the name, or the free slot where it belongs.
  std::size_t slot(const Text& text, std::uint64_t hash) const {
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].number >= 0 && !(slots_[at].hash == hash && slots_[at].text == text))
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  void widen() {
    std::vector<Slot> old(4 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number < 0) continue;
      std::size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].number >= 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::vector<nb::object> names_, bytes_;  // bytes_ own the texts that the names do not own
};

// A sequence as a list or a tuple; its entries are borrowed.
class Items {
 public:
  Items(nb::handle object, const char* message) : held(nb::steal(PySequence_Fast(object.ptr(), message))) {
    if (!held.is_valid()) throw nb::python_error();
    list_ = PyList_Check(held.ptr());
  }
  Py_ssize_t size() const { return list_ ? PyList_Size(held.ptr()) : PyTuple_Size(held.ptr()); }
  nb::handle operator[](Py_ssize_t k) const {
    PyObject* entry = list_ ? PyList_GetItem(held.ptr(), k) : PyTuple_GetItem(held.ptr(), k);
    if (!entry) throw nb::python_error();
    return entry;
  }

  nb::object held;

 private:
  bool list_;
};

// Converts sequences of tokens to CSR rows. A token is a dictionary {name: value} or a list of names; a string value v
// under name n is the attribute "n=v". New names get columns if `grow`, and are skipped otherwise.
class Encoder {
 public:
  Encoder(nb::object index, bool grow) : keep_(index), index_(nb::cast<AttributeIndex&>(index)), grow_(grow) {}

  void add(nb::handle sequences) {
    const Items outer(sequences, "X must be a list of sequences");
    for (Py_ssize_t i = 0; i < outer.size(); ++i) {
      Items tokens(outer[i], "X: every sequence must be a list of tokens");
      const Py_ssize_t count = tokens.size();
      for (Py_ssize_t t = 0; t < count; ++t) {
        token(tokens[t]);
        ends_.push_back(static_cast<index_t>(waiting_.size()));
        if (waiting_.size() > kBatch) flush();
      }
      start_.push_back(start_.back() + count);
      borrowed_.push_back(std::move(tokens.held));
    }
    flush();
  }

  nb::tuple rows() {
    nb::object values = ones_ ? nb::none() : nb::cast(own(std::move(value_)));
    return nb::make_tuple(own(std::move(start_)), own(std::move(indptr_)), own(std::move(attribute_)), values);
  }

 private:
  void token(nb::handle token) {
    if (PyDict_Check(token.ptr())) {
      PyObject *key, *value;
      Py_ssize_t at = 0;
      while (PyDict_Next(token.ptr(), &at, &key, &value)) item(key, value);
    } else if (PyUnicode_Check(token.ptr())) {
      throw nb::type_error(
          "a token is a string; expected a dictionary or a list of attribute names per token. Pass "
          "features=TextFeatures() to make attributes from words");
    } else {
      Items names(token, "X: every token must be a dictionary {name: value} or a list of attribute names");
      for (Py_ssize_t k = 0; k < names.size(); ++k) wait(names[k].ptr(), 1.0);
      if (names.held.ptr() != token.ptr()) borrowed_.push_back(std::move(names.held));
    }
  }

  void item(PyObject* name, PyObject* content) {
    if (PyUnicode_Check(content)) {
      nb::object joined = nb::steal(PyUnicode_FromFormat("%S=%U", name, content));
      if (!joined.is_valid()) throw nb::python_error();
      wait(joined.ptr(), 1.0);
      borrowed_.push_back(std::move(joined));
    } else {
      const double number = PyFloat_AsDouble(content);
      if (number == -1.0 && PyErr_Occurred()) throw nb::python_error();
      if (!std::isfinite(number)) throw nb::value_error("X: an attribute has a value that is NaN or infinite");
      if (number != 0) wait(name, number);
    }
  }

  void wait(PyObject* name, double number) {
    if (!PyUnicode_Check(name)) throw nb::type_error("X: attribute names must be strings");
    nb::object bytes;
    waiting_.push_back({name, text_of(name, bytes), 0, -1});
    if (bytes.is_valid()) borrowed_.push_back(std::move(bytes));
    numbers_.push_back(number);
    ones_ = ones_ && number == 1.0;
  }

  // Looks up the queued names in parallel. The threads read strings that `borrowed_` and the caller keep alive, and no
  // other Python object.
  void flush() {
    const index_t n = static_cast<index_t>(waiting_.size()), parts = parts_for(n, 4096);
    parallel_for(parts, [&](index_t part) { hash(range_begin(n, parts, part), range_begin(n, parts, part + 1)); });
    if (grow_)
      look_up(0, n, [&](const Waiting& w) { return index_.add(w.name, w.text, w.hash); });
    else
      parallel_for(parts, [&](index_t part) {
        look_up(range_begin(n, parts, part), range_begin(n, parts, part + 1),
                [&](const Waiting& w) { return index_.find(w.text, w.hash); });
      });
    if (!ones_) value_.resize(attribute_.size(), 1.0);
    std::size_t token = 0;
    for (index_t k = 0; k < n; ++k) {
      for (; token < ends_.size() && ends_[token] == k; ++token) close();
      if (waiting_[k].column < 0) continue;
      attribute_.push_back(waiting_[k].column);
      if (!ones_) value_.push_back(numbers_[k]);
    }
    for (; token < ends_.size(); ++token) close();
    waiting_.clear();
    numbers_.clear();
    ends_.clear();
    borrowed_.clear();
  }

  void hash(index_t begin, index_t end) {
    for (index_t k = begin; k < end; ++k) {
      if (k + kLead < end) __builtin_prefetch(waiting_[k + kLead].text.data);
      waiting_[k].hash = AttributeIndex::hash(waiting_[k].text);
    }
  }

  template <class F>
  void look_up(index_t begin, index_t end, const F& number) {
    for (index_t k = begin; k < std::min(end, begin + 2 * kLead); ++k) index_.prefetch(waiting_[k].hash);
    for (index_t k = begin; k < end; ++k) {
      if (k + 2 * kLead < end) index_.prefetch(waiting_[k + 2 * kLead].hash);
      if (k + kLead < end) index_.prefetch_name(waiting_[k + kLead].hash);
      waiting_[k].column = number(waiting_[k]);
    }
  }

  void close() { indptr_.push_back(static_cast<index_t>(attribute_.size())); }

  static constexpr index_t kLead = 12;            // how many names ahead are prefetched
  static constexpr std::size_t kBatch = 1 << 16;  // names queued before they are looked up

  struct Waiting {
    PyObject* name;
    Text text;
    std::uint64_t hash;
    std::int32_t column;
  };

  nb::object keep_;
  AttributeIndex& index_;
  bool grow_, ones_ = true;
  std::vector<index_t> start_{0}, indptr_{0};
  std::vector<std::int32_t> attribute_;
  std::vector<double> value_;
  std::vector<Waiting> waiting_;
  std::vector<double> numbers_;
  std::vector<index_t> ends_;         // end of each queued token among the queued names
  std::vector<nb::object> borrowed_;  // keeps the queued names alive
};

}  // namespace

void bind_attributes(nb::module_& m) {
  nb::class_<AttributeIndex>(m, "AttributeIndex")
      .def(nb::init<>())
      .def(
          "extend",
          [](AttributeIndex& index, nb::list names) {
            for (nb::handle name : names) {
              if (!PyUnicode_Check(name.ptr())) throw nb::type_error("attribute names must be strings");
              nb::object bytes;
              const Text text = text_of(name.ptr(), bytes);
              index.add(name, text, AttributeIndex::hash(text));
            }
          },
          "names"_a)
      .def("names", &AttributeIndex::names)
      .def("__len__", &AttributeIndex::size);

  nb::class_<Encoder>(m, "ChainEncoder")
      .def(nb::init<nb::object, bool>(), "index"_a, "grow"_a)
      .def("add", &Encoder::add, "sequences"_a)
      .def("rows", &Encoder::rows);
}

}  // namespace hinge
