// For objects that serve one thread at a time: a second one is refused instead of given wrong
// results.
#pragma once

#include <atomic>
#include <cella/graph/error.hpp>

namespace cella {

/// Two threads used at once what serves one at a time. Nothing was changed for the one that gets
/// this, and the other one's result is right.
struct concurrency_error : error {
  using error::error;
};

/// Remembers which thread is using an object. One atomic operation to begin, a store to end.
class single_caller {
 public:
  /// The calling thread's use of the object, from here to the end of the scope. Scopes of one
  /// thread may be nested.
  class [[nodiscard]] turn {
   public:
    /// Throws `concurrency_error` with this sentence if another thread is at it.
    turn(single_caller& object, const char* refusal) : object_(object) {
      const void* user = nullptr;
      outermost_ = object.user_.compare_exchange_strong(user, this_thread());
      if (!outermost_ && user != this_thread()) [[unlikely]]
        refuse(refusal);
    }
    ~turn() {
      if (outermost_) object_.user_.store(nullptr, std::memory_order_release);
    }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

   private:
    single_caller& object_;
    bool outermost_;
  };

  /// Whether a thread is using the object now.
  bool busy() const { return user_.load() != nullptr; }

  [[noreturn, gnu::cold, gnu::noinline]] static void refuse(const char* sentence) {
    throw concurrency_error(sentence);
  }

 private:
  /// An address that no other living thread has.
  static const void* this_thread() {
    static thread_local const char here{};
    return &here;
  }

  std::atomic<const void*> user_{};
};

}  // namespace cella
