#include <doctest/doctest.h>

#include <algorithm>
#include <cella/backend/cpu/gemm/gemm.hpp>
#include <cella/backend/host/buffer.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "emulated_bf16.hpp"

using namespace cella;
using namespace cella::cpu;

namespace {

constexpr int guard = 40;

template <class T>
T poison() {
  if constexpr (std::is_floating_point_v<T>)
    return std::numeric_limits<T>::quiet_NaN();
  else
    return T(std::numeric_limits<float>::quiet_NaN());
}

/// Exactly the bytes asked for, full of NaN, between guard zones that the sanitizer watches.
template <class T>
struct scratch_space {
  std::unique_ptr<std::byte, void (*)(void*)> bytes;
  explicit scratch_space(std::int64_t size)
      : bytes(static_cast<std::byte*>(::operator new (std::size_t(size), std::align_val_t{64})),
              [](void* p) { ::operator delete (p, std::align_val_t{64}); }) {
    const T nan = poison<T>();
    for (std::size_t i = 0; i + sizeof(T) <= std::size_t(size); i += sizeof(T)) {
      std::memcpy(bytes.get() + i, &nan, sizeof(T));
    }
  }
  std::byte* data() const { return bytes.get(); }
};

/// How an operand lies in memory: contiguous, with gaps between rows, transposed, or strided twice.
enum class layout { rows, gapped_rows, columns, gapped_columns, scattered };

template <class T>
struct operand {
  std::vector<T> storage;
  matrix<T> view;
  std::int64_t batch_stride{};

  operand(int rows, int columns, layout how, int batch, bool broadcast, std::mt19937& random) {
    switch (how) {
      case layout::rows:
        view = {nullptr, columns, 1};
        break;
      case layout::gapped_rows:
        view = {nullptr, columns + 3, 1};
        break;
      case layout::columns:
        view = {nullptr, 1, rows};
        break;
      case layout::gapped_columns:
        view = {nullptr, 1, rows + 5};
        break;
      case layout::scattered:
        view = {nullptr, 2 * columns + 1, 2};
        break;
    }
    const std::int64_t extent =
        std::max<std::int64_t>(0, rows - 1) * view.row + std::max(0, columns - 1) * view.column + 1;
    batch_stride = broadcast ? 0 : extent;
    // Exactly the elements that belong to it, so that the sanitizer sees every step outside; what
    // lies in the gaps is poison.
    storage.assign(static_cast<std::size_t>(broadcast ? extent : extent * batch), poison<T>());
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (int n = 0; n < (broadcast ? 1 : batch); ++n) {
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < columns; ++j) {
          storage[static_cast<std::size_t>(n * extent + i * view.row + j * view.column)] =
              T(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(uniform(random)));
        }
      }
    }
    view.data = storage.data();
  }
  double at(int n, int i, int j) const {
    return static_cast<double>(view.data[n * batch_stride + i * view.row + j * view.column]);
  }
};

struct sizes {
  int rows, columns, depth;
};

/// An epilogue as a caller would write one: bias per column, a factor, and a record of what was
/// seen.
template <class T>
struct biased {
  T* target;
  const T* bias;
  int* visits;
  void operator()(vec<T> value, std::int64_t offset, int row, int column, int count) const {
    store_first(target + offset, count,
                value + load_first(bias + column, count) + vec<T>(static_cast<T>(row)));
    for (int i = 0; i < count; ++i) ++visits[offset + i];
  }
  int list_rows(int height, std::int64_t offset, std::int64_t row_step, const void** to,
                int most) const {
    int count = 0;
    for (int i = 0; i < height && count < most; ++i) to[count++] = target + offset + i * row_step;
    return count;
  }
};

enum class epilogue { store, add, bias };

/// A product in T of operands that are stored as S.
template <class T, class S = T>
void check(sizes s, layout a_layout, layout b_layout, epilogue what, int batch = 1,
           bool broadcast_a = false, bool broadcast_b = false, int parts = 1) {
  std::mt19937 random(static_cast<unsigned>(s.rows * 7919 + s.columns * 104729 + s.depth));
  const operand<S> a(s.rows, s.depth, a_layout, batch, broadcast_a, random);
  const operand<S> b(s.depth, s.columns, b_layout, batch, broadcast_b, random);
  const std::int64_t c_row = s.columns + 2, c_batch = c_row * s.rows + 7;
  const auto c_size = static_cast<std::size_t>(c_batch * batch);
  std::vector<T> c(c_size + 2 * guard, poison<T>());
  std::vector<int> visits(c_size, 0);
  std::vector<T> bias(static_cast<std::size_t>(s.columns));
  for (int j = 0; j < s.columns; ++j) bias[static_cast<std::size_t>(j)] = static_cast<T>(j % 5 - 2);
  if (what == epilogue::add) std::fill(c.begin(), c.end(), T(3));

  const product<T, S> p{.rows = s.rows,
                        .columns = s.columns,
                        .depth = s.depth,
                        .a = a.view,
                        .b = b.view,
                        .c_row = c_row,
                        .batch = batch,
                        .a_batch = a.batch_stride,
                        .b_batch = b.batch_stride,
                        .c_batch = c_batch};
  const scratch_space<T> scratch(gemm_scratch(p));
  T* const target = c.data() + guard;
  const int units = gemm_units(p);
  for (int part = parts; part-- > 0;) {
    const work_range range = part_of(units, parts, part);
    switch (what) {
      case epilogue::store:
        gemm(p, store_to<T>{target}, scratch.data(), range);
        break;
      case epilogue::add:
        gemm(p, accumulate<T>{target}, scratch.data(), range);
        break;
      case epilogue::bias:
        gemm(p, biased<T>{target, bias.data(), visits.data()}, scratch.data(), range);
        break;
    }
  }

  const double tolerance = std::numeric_limits<T>::epsilon() * (4 + 6 * std::sqrt(s.depth));
  int wrong = 0, inside = 0;
  std::vector<bool> belongs(c.size(), false);
  for (int n = 0; n < batch; ++n) {
    for (int i = 0; i < s.rows; ++i) {
      for (int j = 0; j < s.columns; ++j) {
        double expected = 0;
        for (int k = 0; k < s.depth; ++k) expected += a.at(n, i, k) * b.at(n, k, j);
        double size = 1 + std::abs(expected);
        if (what == epilogue::add) expected += 3, size += 3;
        if (what == epilogue::bias) expected += j % 5 - 2 + i, size += i + 2;
        const auto at = static_cast<std::size_t>(n * c_batch + i * c_row + j);
        const double found = c[at + guard];
        if (!(std::abs(found - expected) <= tolerance * size)) ++wrong;
        if (what == epilogue::bias && visits[at] != 1) ++wrong;
        belongs[at + guard] = true;
        ++inside;
      }
    }
  }
  int touched = 0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (!belongs[i] && (what == epilogue::add ? c[i] != T(3) : !std::isnan(c[i]))) ++touched;
  }
  INFO(s.rows << "x" << s.depth << "x" << s.columns << " layouts " << int(a_layout) << int(b_layout)
              << " batch " << batch << " parts " << parts << " epilogue " << int(what));
  REQUIRE(inside == batch * s.rows * s.columns);
  CHECK(wrong == 0);
  CHECK(touched == 0);
}

constexpr layout layouts[]{layout::rows, layout::gapped_rows, layout::columns,
                           layout::gapped_columns, layout::scattered};

}  // namespace

TEST_CASE_TEMPLATE("a product equals its definition for every layout of its operands", T, float,
                   double) {
  constexpr int L = lanes<T>;
  const sizes all[]{{1, 1, 1},
                    {1, 7, 5},
                    {5, 1, 9},
                    {7, 13, 3},
                    {L, L, L},
                    {L + 1, L - 1, 5},
                    {13, 2 * L, 17},
                    {14, 3 * L + 1, 31},
                    {15, 5 * L, L},
                    {29, 33, 37},
                    // With gaps, rows of B lie as far apart as those of packed strips.
                    {29, register_tile<T>::columns - 3, 37},
                    {3, 61, L + 1},
                    {4, 2 * L - 1, 2 * L + 3},
                    {43, 6 * L, 101},
                    {1, 120, 400},
                    {1, 17 * L + 3, 7},
                    {2 * L + 1, 1, 4 * L + 1},
                    {30, 2 * L + 3, 2100}};
  for (const sizes& s : all) {
    for (layout a : layouts) {
      for (layout b : layouts) check<T>(s, a, b, epilogue::bias);
    }
  }
}

TEST_CASE_TEMPLATE("operands of 16 bits are summed in single precision", S, float16, bfloat16,
                   emulated_bf16) {
  constexpr int L = lanes<float>;
  for (const sizes& s :
       {sizes{1, 1, 1}, sizes{1, 7, 5}, sizes{3, 61, L + 1}, sizes{4, 2 * L - 1, 2 * L + 3},
        sizes{1, 120, 400}, sizes{2 * L + 1, 1, 4 * L + 1}, sizes{L, L, L}, sizes{29, 33, 37},
        sizes{15, 5 * L, L - 1}, sizes{43, 6 * L, 101}, sizes{30, 2 * L + 3, 2100}}) {
    for (layout a : layouts) {
      for (layout b : layouts) check<float, S>(s, a, b, epilogue::bias);
    }
    check<float, S>(s, layout::rows, layout::rows, epilogue::add, 3, false, true, 2);
  }
}

TEST_CASE_TEMPLATE("every small extent is right, ragged edges included", T, float, double) {
  for (int rows : {1, 2, 3, 4, 5, 11, 14, 15, 27}) {
    for (int columns = 1; columns <= 3 * lanes<T> + 2; columns += columns < 4 ? 1 : 5) {
      for (int depth : {1, 2, 19}) {
        check<T>({rows, columns, depth}, layout::rows, layout::rows, epilogue::store);
        check<T>({rows, columns, depth}, layout::rows, layout::columns, epilogue::store);
      }
    }
  }
}

TEST_CASE_TEMPLATE("long products are packed and summed in passes without loss", T, float, double) {
  for (epilogue what : {epilogue::store, epilogue::add, epilogue::bias}) {
    check<T>({37, 50, 1031}, layout::rows, layout::rows, what);
    check<T>({61, 8 * register_tile<T>::columns + 5, 411}, layout::rows, layout::columns, what);
    check<T>({61, 8 * register_tile<T>::columns + 5, 411}, layout::columns, layout::rows, what);
    check<T>({31, 9, 2000}, layout::scattered, layout::scattered, what);
  }
  // Several blocks of A, in one pass and in two, and several strips of B, of which each is brought
  // near while tiles of the one before are computed.
  constexpr int page = 4096 / int(sizeof(T)), wide = 8 * register_tile<T>::columns + 3;
  for (layout a : {layout::rows, layout::columns}) {
    for (layout b : {layout::rows, layout::columns}) {
      check<T>({131, wide, page}, a, b, epilogue::bias);
      check<T>({263, wide, page}, a, b, epilogue::store);
      check<T>({263, wide, page + page / 2 + 1}, a, b, epilogue::add, 1, false, false, 3);
      check<T>({263, wide, page + page / 2 + 1}, a, b, epilogue::bias, 1, false, false, 5);
    }
  }
  // More rows than one band, more columns than one block.
  check<T>({1031, 35, 389}, layout::columns, layout::rows, epilogue::bias);
  check<T>({33, 1100, 400}, layout::rows, layout::rows, epilogue::bias);
}

TEST_CASE_TEMPLATE("long columns times few are computed transposed", T, float, double) {
  for (const sizes s :
       {sizes{112, 28, 70}, sizes{131, 2, 33}, sizes{230, 17, 1}, sizes{300, 27, 500}}) {
    for (layout b : {layout::rows, layout::gapped_rows}) {
      for (epilogue what : {epilogue::store, epilogue::add, epilogue::bias}) {
        check<T>(s, layout::columns, b, what);
        check<T>(s, layout::gapped_columns, b, what, 2);
      }
    }
  }
}

TEST_CASE_TEMPLATE("adding to what is there works for every method", T, float, double) {
  for (layout b : {layout::rows, layout::columns, layout::scattered}) {
    for (const sizes s :
         {sizes{1, 45, 33}, sizes{3, 45, 33}, sizes{20, 45, 33}, sizes{20, 1, 33}}) {
      check<T>(s, layout::rows, b, epilogue::add);
    }
  }
}

TEST_CASE_TEMPLATE("a batch may share one operand", T, float, double) {
  for (const sizes s : {sizes{5, 9, 7}, sizes{1, 40, 12}, sizes{40, 1, 12}, sizes{33, 40, 12}}) {
    for (layout b : {layout::rows, layout::columns}) {
      check<T>(s, layout::rows, b, epilogue::bias, 3);
      check<T>(s, layout::rows, b, epilogue::bias, 3, true, false);
      check<T>(s, layout::rows, b, epilogue::bias, 3, false, true);
    }
  }
}

TEST_CASE_TEMPLATE("a product of depth 0 is zero", T, float, double) {
  for (const sizes s : {sizes{5, 9, 0}, sizes{1, 9, 0}, sizes{9, 1, 0}, sizes{40, 70, 0}}) {
    for (layout b : {layout::rows, layout::columns, layout::scattered}) {
      check<T>(s, layout::rows, b, epilogue::store);
      check<T>(s, layout::rows, b, epilogue::bias);
    }
  }
}

TEST_CASE("an empty product has no work and needs no scratch") {
  for (const sizes s : {sizes{0, 5, 5}, sizes{5, 0, 5}}) {
    product<float> p{.rows = s.rows, .columns = s.columns, .depth = s.depth};
    CHECK(gemm_units(p) == 0);
    CHECK(gemm_scratch(p) == 0);
  }
  product<float> none{.rows = 3, .columns = 3, .depth = 3, .batch = 0};
  CHECK(gemm_units(none) == 0);
}

TEST_CASE_TEMPLATE("results do not depend on how the units are shared out, bit for bit", T, float,
                   double) {
  std::mt19937 random(5);
  const sizes all[]{{61, 150, 801}, {271, 150, 801}, {1, 300, 40}, {3, 300, 40},
                    {300, 1, 40},   {30, 61, 20},    {300, 19, 40}};
  for (const sizes& s : all) {
    for (layout b_layout : {layout::rows, layout::columns}) {
      const layout a_layout = s.columns == 19 ? layout::columns : layout::rows;
      const operand<T> a(s.rows, s.depth, a_layout, 2, false, random);
      const operand<T> b(s.depth, s.columns, b_layout, 2, false, random);
      product<T> p{
          .rows = s.rows, .columns = s.columns, .depth = s.depth, .a = a.view, .b = b.view};
      p.c_row = s.columns;
      p.batch = 2;
      p.a_batch = a.batch_stride;
      p.b_batch = b.batch_stride;
      p.c_batch = std::int64_t{s.rows} * s.columns;
      const scratch_space<T> scratch(gemm_scratch(p));
      const auto size = static_cast<std::size_t>(p.c_batch * 2);
      std::vector<T> whole(size, poison<T>());
      std::vector<T> bias(static_cast<std::size_t>(s.columns), T(0.25));
      std::vector<int> visits(size, 0);
      gemm(p, biased<T>{whole.data(), bias.data(), visits.data()}, scratch.data());
      for (int parts : {2, 3, 7}) {
        std::vector<T> shared(size, poison<T>());
        std::fill(visits.begin(), visits.end(), 0);
        for (int i = 0; i < parts; ++i) {
          gemm(p, biased<T>{shared.data(), bias.data(), visits.data()}, scratch.data(),
               part_of(gemm_units(p), parts, i));
        }
        CHECK(shared == whole);
        CHECK(std::all_of(visits.begin(), visits.end(), [](int v) { return v == 1; }));
      }
    }
  }
}

TEST_CASE_TEMPLATE("a product whose right operand was packed before equals the other", T, float,
                   double) {
  constexpr int L = lanes<T>;
  for (const sizes s : {sizes{5, 2, 7}, sizes{20, 2 * L + 1, 33}, sizes{128, 6 * L, 64},
                        sizes{31, 5 * L - 1, 2100}, sizes{300, 9 * L, 600}}) {
    std::mt19937 random(3);
    for (layout b_layout : {layout::rows, layout::columns}) {
      const operand<T> a(s.rows, s.depth, layout::rows, 1, false, random);
      const operand<T> b(s.depth, s.columns, b_layout, 1, false, random);
      product<T> p{.rows = s.rows,
                   .columns = s.columns,
                   .depth = s.depth,
                   .a = a.view,
                   .b = b.view,
                   .c_row = s.columns};
      const auto run = [](const product<T>& q) {
        std::vector<T> c(std::size_t(q.rows) * std::size_t(q.columns), T(-7));
        const aligned_buffer scratch(std::size_t(gemm_scratch(q)));
        gemm(q, store_to<T>{c.data()}, scratch.data());
        return c;
      };
      const auto expected = run(p);
      const aligned_buffer packed(std::size_t(gemm_packed_elements(p)) * sizeof(T));
      for (int u = gemm_pack_units(p); u-- > 0;)
        gemm_pack(p, reinterpret_cast<T*>(packed.data()), {u, u + 1});
      p.packed = reinterpret_cast<const T*>(packed.data());
      p.packed_b = true;
      const auto found = run(p);
      double worst = 0;
      for (std::size_t i = 0; i < found.size(); ++i) {
        const double d = std::abs(double(found[i]) - double(expected[i]));
        worst = d <= worst ? worst : d;
      }
      CHECK(worst < std::numeric_limits<T>::epsilon() * 40 * std::sqrt(double(s.depth)));
    }
  }
}
