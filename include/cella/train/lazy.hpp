// An object that is made on first use.
#pragma once

#include <memory>
#include <utility>

namespace cella::detail {

/// A T that is made on first use, and whose type is not looked into before: naming an executable
/// here does not compile its program.
template <class T>
class lazy {
 public:
  /// The object; the first call makes it from `arguments`.
  template <class... Arguments>
  T& get(Arguments&&... arguments) {
    if (!object_) {
      object_ = {new T(std::forward<Arguments>(arguments)...),
                 [](void* p) { delete static_cast<T*>(p); }};
    }
    return *static_cast<T*>(object_.get());
  }

 private:
  std::unique_ptr<void, void (*)(void*)> object_{nullptr, [](void*) {}};
};

}  // namespace cella::detail
