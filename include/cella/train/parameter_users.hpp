// Who reads a model's parameters, and who changes them.
#pragma once

#include <atomic>
#include <cella/backend/host/single_caller.hpp>
#include <cella/graph/once.hpp>
#include <memory>
#include <mutex>
#include <vector>

namespace cella {

/// Keeps changes of a model's parameters apart from the predictors that read them. Who changes says
/// so and then looks for readers; who reads says so and then looks for a change: of two at once at
/// least one sees the other.
class parameter_users {
 public:
  /// Each in a cache line of its own, so that predictors do not slow each other down.
  struct alignas(128) reader {
    single_caller caller;
  };

  /// For those who make predictors: one after the other, and in the model's turn.
  std::mutex& making() { return making_; }
  std::shared_ptr<reader> add_reader();
  /// For a reader whose turn has begun. Throws `concurrency_error` during a change.
  void check_unchanged() const {
    if (changing_.load()) [[unlikely]]
      single_caller::refuse(
          "another thread trains or loads the model of this predictor; predict before or after");
  }

  /// A change, from here to the end of the scope. Throws `concurrency_error` if somebody reads.
  class [[nodiscard]] change {
   public:
    explicit change(parameter_users& users);
    ~change() { users_.changing_.store(false, std::memory_order_release); }
    change(const change&) = delete;
    change& operator=(const change&) = delete;

   private:
    parameter_users& users_;
  };

 private:
  std::mutex making_;
  std::atomic<bool> changing_{};
  std::vector<std::shared_ptr<reader>> readers_;
};

}  // namespace cella

#if CELLA_HAS_BODIES
#include <cella/train/parameter_users_body.hpp>
#endif
