// Nets of convolutions and dense layers with K-FAC, in double precision by plain loops: what the
// rule is held against. A dense layer is a convolution of images of one pixel.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace cella::test {

using numbers = std::vector<double>;

/// The solution of a x = b for each column of b [n,m], by elimination with pivots.
inline numbers eliminated(numbers a, numbers b, int n, int m) {
  const auto at = [](numbers& v, int columns, int i, int j) -> double& {
    return v[std::size_t(i * columns + j)];
  };
  for (int i = 0; i < n; ++i) {
    int pivot = i;
    for (int r = i; r < n; ++r) {
      if (std::abs(at(a, n, r, i)) > std::abs(at(a, n, pivot, i))) pivot = r;
    }
    for (int j = 0; j < n; ++j) std::swap(at(a, n, i, j), at(a, n, pivot, j));
    for (int j = 0; j < m; ++j) std::swap(at(b, m, i, j), at(b, m, pivot, j));
    for (int r = 0; r < n; ++r) {
      if (r == i) continue;
      const double f = at(a, n, r, i) / at(a, n, i, i);
      for (int j = i; j < n; ++j) at(a, n, r, j) -= f * at(a, n, i, j);
      for (int j = 0; j < m; ++j) at(b, m, r, j) -= f * at(b, m, i, j);
    }
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < m; ++j) at(b, m, i, j) /= at(a, n, i, i);
  }
  return b;
}

struct images {
  int count{}, channels{}, height = 1, width = 1;
  numbers values{};

  double& at(int n, int c, int i, int j) {
    return values[std::size_t(((n * channels + c) * height + i) * width + j)];
  }
};
inline images images_of(int count, int channels, int height = 1, int width = 1) {
  return {count, channels, height, width, numbers(std::size_t(count * channels * height * width))};
}

struct plain_options {
  double decay = 0.95, damping = 1e-3, kl_clip = 1e-3, momentum = 0.9, weight_decay = 0;
  int every = 1;
  bool decays_biases = true;
};

struct plain_layer {
  int out, in, kernel = 1, stride = 1, padding = 0, dilation = 1;
  bool has_bias = true;
  /// Weights and biases as one matrix [out, in kernel kernel + 1], the bias last.
  numbers w{}, gradient{}, velocity{}, step{};
  numbers a{}, g{}, inverse_a{}, inverse_g{};
  images x{};
  numbers rows{};  ///< what the filter sees at each place, and 1
  images dy{};

  int columns() const { return in * kernel * kernel + (has_bias ? 1 : 0); }

  images forward(const images& image) {
    x = image;
    const int reach = dilation * (kernel - 1) + 1;
    const int height = (x.height + 2 * padding - reach) / stride + 1;
    const int width = (x.width + 2 * padding - reach) / stride + 1;
    images y = images_of(x.count, out, height, width);
    rows.assign(std::size_t(x.count * height * width * columns()), has_bias ? 1 : 0);
    for_patches(height, width, [&](int row, int column, int n, int c, int i, int j) {
      rows[std::size_t(row * columns() + column)] =
          i < 0 || j < 0 || i >= x.height || j >= x.width ? 0 : x.at(n, c, i, j);
    });
    int row = 0;
    for (int n = 0; n < y.count; ++n) {
      for (int i = 0; i < height; ++i) {
        for (int j = 0; j < width; ++j, ++row) {
          for (int o = 0; o < out; ++o) {
            for (int k = 0; k < columns(); ++k)
              y.at(n, o, i, j) +=
                  w[std::size_t(o * columns() + k)] * rows[std::size_t(row * columns() + k)];
          }
        }
      }
    }
    return y;
  }
  images backward(const images& d) {
    dy = d;
    gradient.assign(w.size(), 0);
    images dx = images_of(x.count, x.channels, x.height, x.width);
    for_outputs([&](int row, int o, double v) {
      for (int k = 0; k < columns(); ++k)
        gradient[std::size_t(o * columns() + k)] += v * rows[std::size_t(row * columns() + k)];
    });
    for_patches(dy.height, dy.width, [&](int row, int column, int n, int c, int i, int j) {
      if (i < 0 || j < 0 || i >= x.height || j >= x.width) return;
      for (int o = 0; o < out; ++o)
        dx.at(n, c, i, j) += output_gradient(row, o) * w[std::size_t(o * columns() + column)];
    });
    return dx;
  }
  /// The averages, and G^-1 dW A^-1; `k` steps have been made with this one.
  void precondition(const plain_options& o, int k) {
    const int p = columns(), places = int(rows.size()) / p;
    if ((k - 1) % o.every == 0) {
      numbers new_a(std::size_t(p * p)), new_g(std::size_t(out * out));
      for (int row = 0; row < places; ++row) {
        for (int i = 0; i < p; ++i) {
          for (int j = 0; j < p; ++j)
            new_a[std::size_t(i * p + j)] +=
                rows[std::size_t(row * p + i)] * rows[std::size_t(row * p + j)] / places;
        }
        for (int i = 0; i < out; ++i) {
          for (int j = 0; j < out; ++j)
            new_g[std::size_t(i * out + j)] +=
                output_gradient(row, i) * output_gradient(row, j) * x.count;
        }
      }
      const double kept = std::min(1 - 1.0 / ((k - 1) / o.every + 1), o.decay);
      a.resize(new_a.size());
      g.resize(new_g.size());
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = kept * a[i] + (1 - kept) * new_a[i];
      for (std::size_t i = 0; i < g.size(); ++i) g[i] = kept * g[i] + (1 - kept) * new_g[i];
      double trace_a = 0, trace_g = 0;
      for (int i = 0; i < p; ++i) trace_a += a[std::size_t(i * p + i)] / p;
      for (int i = 0; i < out; ++i) trace_g += g[std::size_t(i * out + i)] / out;
      const double pi = std::sqrt(trace_a / trace_g);
      inverse_a = a;
      inverse_g = g;
      for (int i = 0; i < p; ++i) inverse_a[std::size_t(i * p + i)] += pi * std::sqrt(o.damping);
      for (int i = 0; i < out; ++i)
        inverse_g[std::size_t(i * out + i)] += std::sqrt(o.damping) / pi;
    }
    const numbers left = eliminated(inverse_g, gradient, out, p);
    step = transposed(eliminated(inverse_a, transposed(left, out, p), p, out), p, out);
  }

 private:
  static numbers transposed(const numbers& m, int height, int width) {
    numbers t(m.size());
    for (int i = 0; i < height; ++i) {
      for (int j = 0; j < width; ++j)
        t[std::size_t(j * height + i)] = m[std::size_t(i * width + j)];
    }
    return t;
  }
  double output_gradient(int row, int o) {
    const int places = dy.height * dy.width;
    return dy.values[std::size_t((row / places * out + o) * places + row % places)];
  }
  template <class F>
  void for_outputs(F f) {
    for (int row = 0; row < dy.count * dy.height * dy.width; ++row) {
      for (int o = 0; o < out; ++o) f(row, o, output_gradient(row, o));
    }
  }
  template <class F>
  void for_patches(int height, int width, F f) {
    int row = 0;
    for (int n = 0; n < x.count; ++n) {
      for (int i = 0; i < height; ++i) {
        for (int j = 0; j < width; ++j, ++row) {
          int column = 0;
          for (int c = 0; c < in; ++c) {
            for (int p = 0; p < kernel; ++p) {
              for (int q = 0; q < kernel; ++q, ++column)
                f(row, column, n, c, i * stride - padding + p * dilation,
                  j * stride - padding + q * dilation);
            }
          }
        }
      }
    }
  }
};

/// d of the mean cross-entropy of logits [N,C,1,1].
inline images cross_entropy_gradient(images logits, const std::vector<int>& labels) {
  for (int n = 0; n < logits.count; ++n) {
    double sum = 0;
    for (int c = 0; c < logits.channels; ++c) sum += std::exp(logits.at(n, c, 0, 0));
    for (int c = 0; c < logits.channels; ++c) {
      double& v = logits.at(n, c, 0, 0);
      v = (std::exp(v) / sum - (labels[std::size_t(n)] == c)) / logits.count;
    }
  }
  return logits;
}

/// A step of all layers, whose gradients are there.
inline void take_step(std::vector<plain_layer*> layers, const plain_options& o, double rate,
                      int k) {
  double slope = 0;
  for (plain_layer* l : layers) {
    l->precondition(o, k);
    for (std::size_t i = 0; i < l->step.size(); ++i) slope += l->step[i] * l->gradient[i];
  }
  const double factor =
      o.kl_clip == 0 ? 1 : std::min(1.0, std::sqrt(o.kl_clip / (rate * rate * slope)));
  for (plain_layer* l : layers) {
    l->velocity.resize(l->w.size());
    for (std::size_t i = 0; i < l->w.size(); ++i) {
      l->velocity[i] = o.momentum * l->velocity[i] + factor * l->step[i];
      const bool is_bias = l->has_bias && int(i) % l->columns() == l->columns() - 1;
      const double decay = is_bias && !o.decays_biases ? 0 : o.weight_decay;
      l->w[i] -= rate * (l->velocity[i] + decay * l->w[i]);
    }
  }
}

}  // namespace cella::test
