// Aligned memory that outlives nothing: what arenas and parameter stores are made of.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace cella {

namespace detail {
struct release_aligned {
  std::align_val_t alignment{64};
  void operator()(std::byte* p) const { ::operator delete(p, alignment); }
};
}  // namespace detail

/// Zeroed bytes, aligned to `alignment`. Large buffers ask for huge pages: kernels that walk along
/// far rows of a matrix miss fewer translations.
class aligned_buffer {
 public:
  static constexpr std::size_t alignment = 64;

  aligned_buffer() = default;
  explicit aligned_buffer(std::size_t bytes) : data_(take(bytes)), size_(bytes) {
    if (bytes) std::memset(data_.get(), 0, bytes);
  }

  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  using pointer = std::unique_ptr<std::byte, detail::release_aligned>;

  static pointer take(std::size_t bytes) {
    constexpr std::size_t huge_page = std::size_t{1} << 21;
    if (!bytes) return {};
    // The last page, too, if little of it is left over.
    const std::size_t up = (bytes + huge_page - 1) / huge_page * huge_page;
    const std::size_t room = up - bytes <= bytes / 8 ? up : bytes;
    const bool huge = room >= huge_page;
    const std::align_val_t aligned{huge ? huge_page : alignment};
    pointer p(static_cast<std::byte*>(::operator new(room, aligned)), {aligned});
#if defined(__linux__)
    // A wish: without it everything works as well.
    if (huge) madvise(p.get(), room / huge_page * huge_page, MADV_HUGEPAGE);
#endif
    return p;
  }

  pointer data_;
  std::size_t size_{};
};

}  // namespace cella
