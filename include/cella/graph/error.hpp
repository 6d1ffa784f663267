// What the library throws at run time.
#pragma once

#include <cella/graph/text.hpp>
#include <stdexcept>
#include <string>

namespace cella {

/// Base of every exception of the library. `what()` is one sentence that names the thing at fault,
/// the values found and the remedy.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
  explicit error(const text& message) : std::runtime_error(std::string(message.view())) {}
};

/// A fault of a model: the same sentence that graph mode prints as a compile error.
struct model_error : error {
  using error::error;
};

/// A file that is missing, cut, hostile, or does not fit the model.
struct file_error : error {
  using error::error;
};

}  // namespace cella
