// Loaders: the batches of an epoch, made on demand or ahead of time by a thread.
#pragma once

#include <algorithm>
#include <cella/backend/host/process_generation.hpp>
#include <cella/data/batch.hpp>
#include <cella/data/batch_share.hpp>
#include <cella/data/sample.hpp>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace cella::data {

namespace detail {

/// Batches to reuse, so that only the first epoch allocates. Shared by the copies of a loader.
template <class Batch>
class batch_pool {
 public:
  struct item {
    Batch batch;
    scratch work;
  };

  std::unique_ptr<item> take(const sample_shapes<Batch::width>& shapes, std::int64_t capacity) {
    {
      std::lock_guard lock(mutex_);
      if (!items_.empty()) {
        auto last = std::move(items_.back());
        items_.pop_back();
        return last;
      }
    }
    return std::make_unique<item>(item{Batch(shapes, capacity), {}});
  }
  void give_back(std::unique_ptr<item> i) {
    std::lock_guard lock(mutex_);
    items_.push_back(std::move(i));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<item>> items_;
};

/// A loader in the place of the batches of one of its epochs.
template <class Loader>
struct no_epoch {
  __attribute__((unavailable("say which epoch's batches: for (auto& b : batches.epoch(0))")))  //
  no_epoch(const Loader& l)
      : loader(l) {}
  const Loader& loader;
};

inline void check_first_batch(std::int64_t first) {
  if (first < 0) throw error(text("epoch: the first batch is ") << first << "; give 0 or more.");
}

}  // namespace detail

/// A single-pass range over the batches of one epoch, which reuses its buffers: a batch is valid
/// until the next one is asked for. Holds what it needs, so the loader may be a temporary.
template <class Source>
class batch_range {
 public:
  using batch_type = typename Source::batch_type;

  template <class... Args>
  explicit batch_range(std::in_place_t, Args&&... args) : source_(std::forward<Args>(args)...) {}

  class iterator {
   public:
    using value_type = batch_type;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    explicit iterator(Source* source) : source_(source), current_(source->next()) {}
    iterator(iterator&&) = default;
    iterator& operator=(iterator&&) = default;

    batch_type& operator*() const { return *current_; }
    iterator& operator++() {
      current_ = source_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& i, std::default_sentinel_t) { return !i.current_; }

   private:
    Source* source_;
    batch_type* current_;
  };

  iterator begin() { return iterator(&source_); }
  std::default_sentinel_t end() const { return {}; }

 private:
  Source source_;
};

/// What training loops take: `for (auto& batch : l.epoch(e))`, `l.batches()` times.
template <class L>
concept batch_loader = requires(const L& l, std::int64_t e) {
  typename L::batch_type;
  { l.batches() } -> std::convertible_to<std::int64_t>;
  { l.batch_size() } -> std::convertible_to<std::int64_t>;
  { *l.epoch(e).begin() } -> std::same_as<typename L::batch_type&>;
};

/// What can be trained on: a loader, or a data set, of which a loader is made.
template <class Data>
concept sample_source = batch_loader<Data> || dataset<Data>;

template <dataset D>
class prefetching_loader;

/// Cuts a data set into batches of `size` samples; a smaller last batch is kept or dropped.
template <dataset D>
class loader {
 public:
  using batch_type = typename D::sample::template rebind<batch>;

  /// Throws `error` when `size` is not positive.
  loader(D source, std::int64_t size, bool drop_remainder = false)
      : source_(std::move(source)), size_(size), drop_remainder_(drop_remainder) {
    if (size < 1 || size > 0x7fffffff) {
      throw error(text("batch: the size is ") << size << "; give at least 1 and less than 2^31.");
    }
  }

  const D& source() const { return source_; }
  std::int64_t batch_size() const { return size_; }
  /// Batches per epoch.
  std::int64_t batches() const {
    const std::int64_t samples = source_.size();
    return samples / size_ + (!drop_remainder_ && samples % size_ ? 1 : 0);
  }
  /// Samples per epoch.
  std::int64_t samples() const {
    return drop_remainder_ ? batches() * size_ : std::int64_t{source_.size()};
  }

  /// The batches of epoch `e`, from number `first_batch` on (to resume in mid-epoch); of each the
  /// samples of a share, for one of several readers. Throws `error` for a number below 0.
  auto epoch(std::int64_t e, std::int64_t first_batch = 0, const batch_shares& shares = {}) const {
    detail::check_first_batch(first_batch);
    return batch_range<direct_source>(std::in_place, *this, e, first_batch, shares);
  }

  /// The same batches, made by one background thread up to `depth` ahead of the consumer.
  /// Throws `error` when `depth` is not positive.
  prefetching_loader<D> prefetch(std::int64_t depth = 2) const { return {*this, depth}; }

  // A loop over the loader itself asks for both; one of them is the error.
  friend batch_type* begin(detail::no_epoch<loader>) { return nullptr; }
  friend batch_type* end(const loader&) { return nullptr; }

 private:
  friend class prefetching_loader<D>;
  using pool = detail::batch_pool<batch_type>;
  using item = typename pool::item;

  std::unique_ptr<item> take() const { return pool_->take(source_.shapes(), size_); }
  void fill(item& i, std::int64_t epoch, std::int64_t index, const batch_shares& shares) const {
    const std::int64_t first = index * size_;
    const batch_share& own = index + 1 < batches() ? shares.each : shares.last;
    const std::int64_t count = own.count < 0 ? std::min(size_, source_.size() - first) : own.count;
    i.batch.fill(source_, epoch, index, first + own.first, count, i.work);
  }

  class direct_source {
   public:
    using batch_type = loader::batch_type;
    direct_source(const loader& from, std::int64_t epoch, std::int64_t first,
                  const batch_shares& shares)
        : loader_(from), item_(from.take()), epoch_(epoch), next_(first), shares_(shares) {}
    direct_source(const direct_source&) = delete;
    ~direct_source() { loader_.pool_->give_back(std::move(item_)); }

    batch_type* next() {
      if (next_ >= loader_.batches()) return nullptr;
      loader_.fill(*item_, epoch_, next_++, shares_);
      return &item_->batch;
    }

   private:
    loader loader_;
    std::unique_ptr<item> item_;
    std::int64_t epoch_;
    std::int64_t next_;
    batch_shares shares_;
  };

  D source_;
  std::int64_t size_;
  bool drop_remainder_;
  std::shared_ptr<pool> pool_ = std::make_shared<pool>();
};

/// A loader whose batches are made ahead by a background thread, which lives as long as the range
/// that `epoch` returns. What the producer throws is rethrown to the consumer, in its place.
template <dataset D>
class prefetching_loader {
 public:
  using batch_type = typename loader<D>::batch_type;

  prefetching_loader(loader<D> from, std::int64_t depth) : loader_(std::move(from)), depth_(depth) {
    if (depth < 1 || depth > 4096) {
      throw error(text("prefetch: the depth is ") << depth << "; give between 1 and 4096 batches.");
    }
  }

  const D& source() const { return loader_.source(); }
  std::int64_t batch_size() const { return loader_.batch_size(); }
  std::int64_t batches() const { return loader_.batches(); }
  std::int64_t samples() const { return loader_.samples(); }

  auto epoch(std::int64_t e, std::int64_t first_batch = 0, const batch_shares& shares = {}) const {
    detail::check_first_batch(first_batch);
    return batch_range<threaded_source>(std::in_place, loader_, depth_, e, first_batch, shares);
  }

 private:
  /// A ring of depth + 1 batches: the consumer holds one, the others are full or being filled.
  class threaded_source {
   public:
    using batch_type = prefetching_loader::batch_type;

    threaded_source(const loader<D>& from, std::int64_t depth, std::int64_t epoch,
                    std::int64_t first, const batch_shares& shares)
        : loader_(from),
          epoch_(epoch),
          first_(first),
          shares_(shares),
          generation_(process_generation::watched()),
          producer_(std::make_unique<producer>()) {
      for (std::int64_t i = 0; i <= depth; ++i) ring_.push_back(loader_.take());
      producer_->thread = std::thread([this] { produce(); });
    }
    threaded_source(const threaded_source&) = delete;
    ~threaded_source() {
      if (!has_thread()) {
        // It can be neither joined nor detached, and waits for ever: what it had is left alone.
        static_cast<void>(producer_.release());
        for (auto& i : ring_) static_cast<void>(i.release());
        return;
      }
      {
        std::lock_guard lock(producer_->mutex);
        stop_ = true;
      }
      producer_->space.notify_one();
      producer_->thread.join();
      for (auto& i : ring_) loader_.pool_->give_back(std::move(i));
    }

    batch_type* next() {
      if (!has_thread()) {
        throw error(
            "this range of batches was begun before a fork, and its thread is in the other "
            "process; begin an epoch here");
      }
      std::unique_lock lock(producer_->mutex);
      if (holding_) {
        holding_ = false;
        ++released_;
        producer_->space.notify_one();
      }
      producer_->ready.wait(lock, [&] { return filled_ > released_ || finished_; });
      if (filled_ > released_) {
        holding_ = true;
        return &ring_[released_ % ring_.size()]->batch;
      }
      if (failure_) std::rethrow_exception(failure_);
      return nullptr;
    }

   private:
    struct producer {
      std::mutex mutex;
      std::condition_variable space, ready;
      std::thread thread;
    };

    /// A child of `fork` has the thread that called it, and no other.
    bool has_thread() const { return generation_ == process_generation::now(); }
    void produce() {
      try {
        for (std::int64_t i = first_; i < loader_.batches(); ++i) {
          std::size_t slot{};
          {
            std::unique_lock lock(producer_->mutex);
            producer_->space.wait(lock,
                                  [&] { return stop_ || filled_ - released_ < ring_.size(); });
            if (stop_) return;
            slot = filled_ % ring_.size();
          }
          loader_.fill(*ring_[slot], epoch_, i, shares_);
          {
            std::lock_guard lock(producer_->mutex);
            ++filled_;
          }
          producer_->ready.notify_one();
        }
      } catch (...) {
        std::lock_guard lock(producer_->mutex);
        failure_ = std::current_exception();
      }
      {
        std::lock_guard lock(producer_->mutex);
        finished_ = true;
      }
      producer_->ready.notify_one();
    }

    loader<D> loader_;
    std::int64_t epoch_;
    std::int64_t first_;
    batch_shares shares_;
    std::vector<std::unique_ptr<typename loader<D>::item>> ring_;
    std::size_t filled_{};
    std::size_t released_{};
    bool holding_{};
    bool finished_{};
    bool stop_{};
    std::exception_ptr failure_;
    unsigned generation_;
    std::unique_ptr<producer> producer_;
  };

  loader<D> loader_;
  std::int64_t depth_;
};

}  // namespace cella::data
