// Ctrl-C ends training in good order, so that it can be saved and gone on with (POSIX).
#pragma once

#include <atomic>
#include <cella/train/fit.hpp>
#include <csignal>
#include <memory>
#include <mutex>

namespace cella::train {

/// While one of these lives, the first SIGINT (Ctrl-C) is only noted, and a second one ends the
/// program at once. For a loop of your own: `train::interruption ctrl_c;`, then
/// `while (!ctrl_c.happened())`. The handler that was there before comes back with the last of
/// them. Where interrupts are ignored (nohup), they stay so.
class interruption {
 public:
  interruption() {
    const std::lock_guard lock(mutex_);
    if (users_++ > 0) return;
    noted_ = false;
    ::sigaction(SIGINT, nullptr, &previous_);
    if (previous_.sa_handler == SIG_IGN) return;
    struct sigaction action {};
    action.sa_handler = [](int) { noted_ = true; };
    action.sa_flags = int(SA_RESETHAND) | SA_RESTART;  // the second one finds the default
    ::sigaction(SIGINT, &action, nullptr);
  }
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;
  ~interruption() {
    const std::lock_guard lock(mutex_);
    if (--users_ == 0) ::sigaction(SIGINT, &previous_, nullptr);
  }
  bool happened() const { return noted_; }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");
  static inline std::atomic<bool> noted_{};
  static inline std::mutex mutex_;
  static inline int users_ = 0;
  static inline struct sigaction previous_ {};
};

/// A callback: Ctrl-C stops training after the batch at hand. Training goes on there with the next
/// call of fit, or in another program, once the model was saved:
///
///   train::stop_on_interrupt ctrl_c;
///   m.fit(data, {.epochs = 20 - m.epochs()}, ctrl_c);
///   if (ctrl_c.interrupted) m.save("unfinished.safetensors", {.optimizer = true});
///
/// Interrupts are watched until training ends, or, when an exception ends it, as long as this
/// lives.
struct stop_on_interrupt {
  bool interrupted = false;  ///< readable after training

  void on_train_begin(const fit_state&) {
    interrupted = false;
    watch_ = std::make_unique<interruption>();
  }
  void on_batch_end(fit_state& s) { look(s); }
  void on_epoch_end(fit_state& s) { look(s); }
  void on_train_end(const fit_state&) { watch_.reset(); }

  std::unique_ptr<interruption> watch_{};

 private:
  void look(fit_state& s) {
    if (watch_->happened()) s.stop = interrupted = true;
  }
};

}  // namespace cella::train
