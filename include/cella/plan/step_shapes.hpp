// What the kernel of a step works on, one struct for each family of steps: extents in elements, as
// the planner found them in the graph. Kernels of one layout cut them into vectors and blocks.
#pragma once

#include <cella/graph/options.hpp>
#include <cstdint>

namespace cella {

/// How a convolution in blocks of channels, or a gradient of one, is computed.
enum class convolution_form : std::int32_t {
  direct,
  stem,       ///< of a plain image of few channels
  winograd,   ///< by Winograd's minimal filtering
  depthwise,  ///< one filter for each channel
  pairs       ///< direct, of images that are stored in bf16, in pairs of summands
};

/// Images [samples, channels, height, width] and filters [filters, channels, kernel...]: of a
/// convolution, or of its gradients. Padding is that before the image.
struct convolution_step {
  std::int32_t samples{}, channels{}, height{}, width{};
  std::int32_t filters{}, kernel_height{}, kernel_width{};
  std::int32_t stride_height{}, stride_width{}, padding_height{}, padding_width{};
  convolution_form form{};
  std::int32_t keeps_filters{};  ///< those that it packs stay from call to call
  stored_dtype filter{};         ///< pairs: the type in which memory holds the filters
};

/// Windows of an image.
struct pooling_step {
  std::int32_t samples{}, channels{}, height{}, width{};
  std::int32_t kernel_height{}, kernel_width{};
  std::int32_t stride_height{}, stride_width{}, padding_height{}, padding_width{};
  std::int32_t out_height{}, out_width{};
};

/// A batch of images as it changes its layout, and the zero border that it gets.
struct image_step {
  std::int32_t samples{}, channels{}, height = 1, width = 1;
  std::int32_t border_height{}, border_width{};
};

/// A batch norm, or its gradient.
struct norm_step {
  std::int32_t samples{}, channels{}, pixels{};
  stored_dtype image{};      ///< the type in which memory holds x
  stored_dtype cotangent{};  ///< of a gradient: the same of dy
};

/// Features in the lanes times weights: y [samples, rows], elements between rows and columns of
/// the weights.
struct lanes_product_step {
  std::int32_t samples{}, rows{}, inner{}, row_stride{}, column_stride{};
};

/// The gradient of such weights.
struct lanes_weights_step {
  std::int32_t samples{}, out_features{}, in_features{};
};

/// Cross-entropy of rows of logits.
struct loss_step {
  std::int32_t samples{}, classes{};
};

/// A tensor of heads: elements from one sample, head and place to the next.
struct heads_step {
  std::int64_t sample{}, head{}, place{};
};
/// Attention, or its gradient: where the results lie (all of the gradient's by the same steps).
struct attention_step {
  std::int32_t samples{}, heads{}, queries{}, keys{}, width{}, value_width{}, causal{};
  std::int32_t results = 1;
  heads_step result;
  std::int64_t offsets[3]{};  ///< of the gradients of queries, keys and values in their tensors
};

/// A sweep over rows; the first `kept` axes of the tensor are the rows'. Where some reads have one
/// number for each `stretch` elements of a row, there are so many `numbers`, which begin again
/// behind the last one; else it is 0.
struct rows_step {
  std::int64_t rows{}, width{}, kept{}, unit_rows{}, stretch{}, numbers{};

  constexpr std::int64_t units() const { return (rows + unit_rows - 1) / unit_rows; }
  /// The number of the stretch that column `i` of a row lies in.
  constexpr std::int64_t number_at(std::int64_t row, std::int64_t i) const {
    return stretch ? (row * (width / stretch) + i / stretch) % numbers : 0;
  }
};

/// A sum. In lanes: whether it is taken over the samples, too.
struct reduce_step {
  std::int32_t samples{}, across_lanes{};
};

/// An elementwise operation on other types: whether it is of the size of its first operand.
struct typed_step {
  std::int32_t of_size{};
};

struct copy_step {
  std::int64_t bytes{};
};

}  // namespace cella
