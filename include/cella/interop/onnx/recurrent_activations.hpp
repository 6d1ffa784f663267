// The functions that recurrent layers apply, by their names in a model.
#pragma once

#include <algorithm>
#include <cctype>
#include <cella/interop/onnx/activations.hpp>
#include <functional>

namespace cella::interop {

using activation = std::function<var(var)>;

/// The activations of a layer by their names, with ONNX's defaults. Each that takes a number takes
/// the next one of the list.
class activation_names {
 public:
  explicit activation_names(const onnx_node& n)
      : n_(n),
        names_(n.strings("activations")),
        alpha_(n.numbers("activation_alpha")),
        beta_(n.numbers("activation_beta")) {}
  activation at(std::size_t i, const char* otherwise) const {
    const std::string name = in_lower_case(i < names_.size() ? names_[i] : otherwise);
    std::size_t alphas = 0, betas = 0;  // of those before
    for (std::size_t k = 0; k < std::min(i, names_.size()); ++k) {
      alphas += takes_alpha(in_lower_case(names_[k]));
      betas += takes_beta(in_lower_case(names_[k]));
    }
    const double a = alphas < alpha_.size() ? alpha_[alphas] : std::nan("");
    const double b = betas < beta_.size() ? beta_[betas] : std::nan("");
    auto number = [](double said, double usual) { return std::isnan(said) ? usual : said; };
    if (name == "sigmoid") return [](var x) { return sigmoid(x); };
    if (name == "tanh") return [](var x) { return tanh(x); };
    if (name == "relu") return [](var x) { return relu(x); };
    if (name == "softsign") return [](var x) { return softsign(x); };
    if (name == "softplus") return [](var x) { return softplus(x); };
    if (name == "affine") return [k = number(a, 1), c = number(b, 0)](var x) { return x * k + c; };
    if (name == "leakyrelu") return [k = number(a, 0.01)](var x) { return leaky_relu(x, k); };
    if (name == "elu") return [k = number(a, 1)](var x) { return elu(x, k); };
    if (name == "hardsigmoid")
      return [k = number(a, 0.2), c = number(b, 0.5)](var x) { return clamp(x * k + c, 0, 1); };
    if (name == "scaledtanh")
      return [k = number(a, 1), c = number(b, 1)](var x) { return tanh(x * c) * k; };
    if (name == "thresholdedrelu")
      return [k = number(a, 1)](var x) { return select(x > k, x, zeros_like(x)); };
    n_.not_supported("the activation " + in_quotes(name));
  }

 private:
  static std::string in_lower_case(std::string name) {
    for (char& c : name) c = char(std::tolower(static_cast<unsigned char>(c)));
    return name;
  }
  static bool takes_beta(const std::string& name) {
    return name == "affine" || name == "hardsigmoid" || name == "scaledtanh";
  }
  static bool takes_alpha(const std::string& name) {
    return takes_beta(name) || name == "leakyrelu" || name == "elu" || name == "thresholdedrelu";
  }

  const onnx_node& n_;
  std::vector<std::string> names_;
  std::vector<double> alpha_, beta_;
};

}  // namespace cella::interop
