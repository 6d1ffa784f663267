// What state.hpp declares.
#pragma once

#include <cella/train/state.hpp>
#include <limits>

namespace cella::train {

CELLA_BODY void state_visitor::write(std::string_view name, dtype element, const void* numbers,
                                     std::size_t count) {
  const std::string key = owner_ + "." + std::string(name);
  if (count > std::size_t(std::numeric_limits<std::int32_t>::max()))
    throw error("the state \"" + key + "\" has more elements than a file takes, 2147483647");
  state_tensor t{{element, {int(count)}}, {}};
  t.bytes.resize(std::size_t(t.type.bytes()));
  if (count) std::memcpy(t.bytes.data(), numbers, t.bytes.size());
  (*values_)[key] = std::move(t);
}

CELLA_BODY const state_tensor* state_visitor::find(std::string_view name, dtype element,
                                                   int count) const {
  const std::string key = owner_ + "." + std::string(name);
  const auto found = values_->find(key);
  if (found == values_->end()) return nullptr;
  const tensor_type& type = found->second.type;
  if (type.element != element || (count >= 0 && type.size() != count)) {
    throw file_error(text() << "the checkpoint's tensor \"cella.fit." << key << "\" is " << type
                            << ", which is not what the callback or metric of this name keeps; "
                               "give it another state_name, or load without the optimizer");
  }
  return &found->second;
}

}  // namespace cella::train
