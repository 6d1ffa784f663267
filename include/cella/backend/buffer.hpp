// Aligned memory that outlives nothing: what arenas and parameter stores are made of.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace cella {

/// Zeroed bytes, aligned to `alignment`.
class aligned_buffer {
 public:
  static constexpr std::size_t alignment = 64;

  aligned_buffer() = default;
  explicit aligned_buffer(std::size_t bytes)
      : data_(bytes ? static_cast<std::byte*>(::operator new(bytes, std::align_val_t(alignment))) : nullptr),
        size_(bytes) {
    if (bytes) std::memset(data_.get(), 0, bytes);
  }

  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct release {
    void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t(alignment)); }
  };
  std::unique_ptr<std::byte, release> data_;
  std::size_t size_{};
};

}  // namespace cella
