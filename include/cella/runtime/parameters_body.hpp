// What parameters.hpp declares.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/random.hpp>
#include <cella/graph/random.hpp>
#include <cella/ops/numbers.hpp>
#include <cella/plan/memory.hpp>
#include <cella/runtime/parameters.hpp>
#include <cmath>
#include <cstring>

namespace cella {

namespace detail {

/// How many characters two names share at their ends: what is misspelt mostly begins and ends like
/// what was meant.
inline std::size_t alikeness(std::string_view a, std::string_view b) {
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t front = 0, back = 0;
  while (front < shorter && a[front] == b[front]) ++front;
  while (back < shorter && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  return front + back;
}

}  // namespace detail

CELLA_BODY void parameter_store::collector::on_parameter(std::string_view path, parameter_base& p) {
  members.push_back(&p);
  store.add(path, p);
}
CELLA_BODY void parameter_store::add(std::string_view path, const parameter_base& p) {
  entries_.push_back({std::string(path), {element_, p.extents}, p.trainable, size_});
  size_ += align_up(entries_.back().type.bytes());
}
CELLA_BODY void parameter_store::initialize(const std::vector<parameter_base*>& members,
                                            std::uint64_t seed) {
  random_offset_ = size_;
  size_ += align_up(16);
  memory_ = aligned_buffer(std::size_t(size_));
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i]->element = element_;
    members[i]->data = memory_.data() + entries_[i].offset;
    fill(*members[i], entries_[i], seed);
  }
  random_state()[0] = std::int64_t(seed);
}

CELLA_BODY const named_parameter* parameter_store::find(std::string_view name) const {
  for (const auto& e : entries_) {
    if (e.name == name) return &e;
  }
  return nullptr;
}

CELLA_BODY std::int64_t parameter_store::trainable_count() const {
  std::int64_t n = 0;
  for (const auto& e : entries_) n += e.trainable ? e.type.size() : 0;
  return n;
}

CELLA_BODY void parameter_store::check(std::uint64_t signature, dtype element) const {
  parameter_signature own;
  for (const auto& e : entries_) own.add(e.name, e.type);
  if (own.value != signature || element != element_) {
    throw error(
        text() << "this program is of another model, or of another element type, than these "
               << "parameters of " << cella::name(element_) << ", of which the first is \""
               << (entries_.empty() ? std::string_view() : std::string_view(entries_[0].name))
               << "\"; a net inside of the cell that was trained gets a store of its own by "
               << "copy_part");
  }
}

CELLA_BODY const named_parameter& parameter_store::known(std::string_view name, dtype asked) const {
  if (const named_parameter* p = find(name)) {
    if (p->type.element == asked) return *p;
    throw error(text() << "parameter_store: \"" << name << "\" is " << p->type
                       << ", but was asked for as " << cella::name(asked)
                       << "; ask for its own type");
  }
  std::array<const named_parameter*, 3> nearest{};
  std::array<std::size_t, 3> alike{};
  for (const named_parameter& e : entries_) {
    const named_parameter* candidate = &e;
    std::size_t score = detail::alikeness(e.name, name);
    for (std::size_t k = 0; k < nearest.size() && candidate; ++k) {
      if (nearest[k] && alike[k] >= score) continue;
      std::swap(nearest[k], candidate);
      std::swap(alike[k], score);
    }
  }
  text sentence;
  sentence << "parameter_store: there is no \"" << name << "\"";
  for (std::size_t k = 0; k < nearest.size() && nearest[k]; ++k)
    sentence << (k ? ", \"" : "; near names: \"") << nearest[k]->name << "\"";
  throw error(sentence);
}

CELLA_BODY void parameter_store::check_alike(const char* who, const parameter_store& other) const {
  const std::size_t shared = std::min(entries_.size(), other.entries_.size());
  for (std::size_t i = 0; i < shared; ++i) {
    const named_parameter &own = entries_[i], &its = other.entries_[i];
    if (own.name == its.name && own.type == its.type) continue;
    throw error(text() << who << ": the stores differ: \"" << own.name << "\" " << own.type
                       << " here, \"" << its.name << "\" " << its.type
                       << " there; stores of one net are alike, and copy_part takes a part");
  }
  if (entries_.size() == other.entries_.size()) return;
  const bool here = entries_.size() > shared;
  throw error(text() << who << ": the stores differ: only the " << (here ? "first" : "second")
                     << " has \"" << (here ? entries_ : other.entries_)[shared].name
                     << "\"; stores of one net are alike, and copy_part takes a part");
}

CELLA_BODY void parameter_store::copy_from(const parameter_store& other) {
  check_alike("copy_from", other);
  if (random_offset_) std::memmove(data(), other.data(), std::size_t(random_offset_));
  touch();
}

CELLA_BODY void parameter_store::copy_part(const parameter_store& other, std::string_view from,
                                           std::string_view to) {
  std::vector<std::pair<const named_parameter*, const named_parameter*>> pairs;
  for (const named_parameter& own : entries_) {
    std::string_view rest = own.name;
    if (!to.empty()) {
      if (!rest.starts_with(to) || rest.substr(to.size(), 1) != ".") continue;
      rest.remove_prefix(to.size() + 1);
    }
    const std::string name =
        from.empty() ? std::string(rest) : std::string(from) + "." + std::string(rest);
    const named_parameter* const its = other.find(name);
    if (!its || its->type != own.type) {
      text sentence;
      sentence << "copy_part: the stores differ: \"" << own.name << "\" is " << own.type
               << " here, and there is ";
      if (its) throw error(sentence << "\"" << name << "\" " << its->type << " there");
      throw error(sentence << "no \"" << name << "\" there");
    }
    pairs.emplace_back(&own, its);
  }
  if (pairs.empty()) throw error(text() << "copy_part: nothing here is called \"" << to << ".*\"");
  for (const auto& [own, its] : pairs)
    std::memmove(data() + own->offset, other.data() + its->offset, std::size_t(own->type.bytes()));
  touch();
}

CELLA_BODY void parameter_store::lerp(const parameter_store& other, double t) {
  check_alike("lerp", other);
  if (!(t >= 0 && t <= 1))
    throw error(text() << "lerp: t is " << t << "; it must lie between 0 and 1");
  for (const auto& e : entries_) {
    with_element(e.type.element, [&]<class T>() {
      T* const y = reinterpret_cast<T*>(data() + e.offset);
      const T* const x = reinterpret_cast<const T*>(other.data() + e.offset);
      for (std::int64_t i = 0; i < e.type.size(); ++i) {
        if constexpr (is_floating(dtype_of<T>))
          y[i] = from_double<T>(std::lerp(double(y[i]), double(x[i]), t));
        else
          y[i] = x[i];
      }
    });
  }
  touch();
}

CELLA_BODY void parameter_store::fill(const parameter_base& p, const named_parameter& e,
                                      std::uint64_t seed) {
  using kind = initializer::kind_t;
  std::uint64_t key = seed;
  for (char c : e.name) key = fold_in(key, std::uint64_t(static_cast<unsigned char>(c)));
  const initializer& init = p.init;
  const std::int64_t size = p.extents.size();
  const std::int64_t outputs = p.extents.rank ? p.extents[0] : 1;
  const double receptive = p.extents.rank > 2 ? double(p.extents.size(2, p.extents.rank)) : 1;
  const double fan_in =
      init.fan ? double(init.fan)
               : std::max(1.0, double(size) / double(std::max<std::int64_t>(outputs, 1)));
  const double fan_out = std::max(1.0, double(outputs) * receptive);
  double low = 0;
  double spread = 0;  // of a uniform distribution, or the deviation of a normal one
  bool normal_numbers = false;
  switch (init.kind) {
    case kind::constant:
      low = init.a;
      break;
    case kind::uniform:
      low = init.a;
      spread = init.b - init.a;
      break;
    case kind::normal:
    case kind::truncated_normal:
      low = init.a;
      spread = init.b;
      normal_numbers = true;
      break;
    case kind::xavier_normal:
      spread = init.a * std::sqrt(2 / (fan_in + fan_out));
      normal_numbers = true;
      break;
    case kind::he_normal:
      spread = init.a * std::sqrt(2 / fan_in);
      normal_numbers = true;
      break;
    case kind::xavier_uniform:
      spread = 2 * init.a * std::sqrt(6 / (fan_in + fan_out));
      low = -spread / 2;
      break;
    case kind::he_uniform:
      spread = 2 * init.a * std::sqrt(6 / fan_in);
      low = -spread / 2;
      break;
    case kind::fan_in_uniform:
      spread = 2 * init.a / std::sqrt(fan_in);
      low = -spread / 2;
      break;
    case kind::custom:
      spread = 1;
      break;
  }
  // One loop for each element type, whatever the distribution: programs compile all of them.
  const tensor_ref to = value(e);
  const auto put = [&](std::int64_t first, std::span<const double> numbers)
      __attribute__((noinline)) {
    with_element(element_, [&]<class T>() {
      if constexpr (is_floating(dtype_of<T>)) {
        T* const y = reinterpret_cast<T*>(to.data) + first;
        for (std::size_t k = 0; k < numbers.size(); ++k)
          y[k] = from_double<T>(low + spread * numbers[k]);
      }
    });
  };
  if (init.kind == kind::custom) {
    std::vector<double> values(static_cast<std::size_t>(size));
    init.make(values, p.extents, key, init.a, init.b);
    return put(0, values);
  }
  if (normal_numbers && init.kind != kind::truncated_normal) return for_normal(key, size, put);
  if (spread != 0 && !normal_numbers) return for_uniform(key, size, put);
  generator numbers(key);
  for (std::int64_t i = 0; i < size; ++i) {
    double z = spread == 0 ? 0 : numbers.normal<double>();
    while (std::abs(z) > 2) z = numbers.normal<double>();
    put(i, {&z, 1});
  }
}

}  // namespace cella
