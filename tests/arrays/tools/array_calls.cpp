// Calls functions of arrays by name, for array_semantics.py and random_programs.py. Each line of
// standard input is a call, {"f": name, "in": [{"dtype": .., "shape": [..], "bytes": hex}, ..],
// "n": lists of numbers}, or a program of such, {"program": [[name, [operands], lists of numbers],
// ..], "in": ..}: the operands are inputs, then results in their order, and what it computes is the
// last result, a scalar, and its gradients by all inputs. Each line of standard output has the
// results on both tiers or the fault.
#include <cella/backend/host/threads.hpp>
#include <cella/ops/arranging.hpp>
#include <cella/ops/bitwise.hpp>
#include <cella/ops/einsum.hpp>
#include <cella/ops/linear_algebra.hpp>
#include <cella/ops/list.hpp>
#include <cella/ops/numeric.hpp>
#include <cella/ops/segments.hpp>
#include <cella/ops/signal.hpp>
#include <cella/ops/statistics.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/trace.hpp>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using namespace cella;
using nlohmann::json;

namespace {

using numbers = std::vector<int>;
/// A function of tensors and of lists of numbers: axes, extents, flags.
using function = std::function<list<var>(const list<var>&, const std::vector<numbers>&)>;

template <var (*F)(operand)>
list<var> one(const list<var>& x, const std::vector<numbers>&) {
  return {F(x[0])};
}
template <var (*F)(operand, operand)>
list<var> two(const list<var>& x, const std::vector<numbers>&) {
  return {F(x[0], x[1])};
}
/// Axes, and whether they are kept.
template <var (*F)(operand, const axis_list&, bool)>
list<var> folded(const list<var>& x, const std::vector<numbers>& n) {
  return {F(x[0], n[0], n[1][0] != 0)};
}
/// A number that is an integer of hundredths.
double hundredths(int n) { return n / 100.0; }
shape shape_of(const numbers& n) {
  shape s;
  for (int e : n) s.push_back(e);
  return s;
}

const std::map<std::string, function>& functions() {
  using v = const list<var>&;
  using p = const std::vector<numbers>&;
  static const std::map<std::string, function> table{
      {"abs", one<abs>},
      {"arccos", one<acos>},
      {"arccosh", one<acosh>},
      {"arcsin", one<asin>},
      {"arcsinh", one<asinh>},
      {"arctan", one<atan>},
      {"arctanh", one<atanh>},
      {"ceil", one<ceil>},
      {"conjugate", one<conj>},
      {"cos", one<cos>},
      {"cosh", one<cosh>},
      {"exp", one<exp>},
      {"expm1", one<expm1>},
      {"floor", one<floor>},
      {"log", one<log>},
      {"log1p", one<log1p>},
      {"log2", one<log2>},
      {"logical_not", one<logical_not>},
      {"rint", one<round>},
      {"sign", one<sign>},
      {"sin", one<sin>},
      {"sinh", one<sinh>},
      {"sqrt", one<sqrt>},
      {"square", one<square>},
      {"tan", one<tan>},
      {"tanh", one<tanh>},
      {"trunc", one<trunc>},
      {"invert", one<bitwise_not>},
      {"diagonal", one<diagonal>},
      {"trace", one<trace>},
      {"zeros_like", one<zeros_like>},
      {"ones_like", one<ones_like>},
      {"real", one<real>},
      {"imag", one<imag>},
      {"angle", one<angle>},
      {"negative", [](v x, p) -> list<var> { return {-x[0]}; }},
      {"add", [](v x, p) -> list<var> { return {x[0] + x[1]}; }},
      {"subtract", [](v x, p) -> list<var> { return {x[0] - x[1]}; }},
      {"multiply", [](v x, p) -> list<var> { return {x[0] * x[1]}; }},
      {"divide", [](v x, p) -> list<var> { return {x[0] / x[1]}; }},
      {"power", two<pow>},
      {"arctan2", two<atan2>},
      {"maximum", two<maximum>},
      {"minimum", two<minimum>},
      {"equal", two<equal>},
      {"not_equal", two<not_equal>},
      {"less", two<less>},
      {"less_equal", two<less_equal>},
      {"greater", two<greater>},
      {"greater_equal", two<greater_equal>},
      {"logical_and", two<logical_and>},
      {"logical_or", two<logical_or>},
      {"logical_xor", two<logical_xor>},
      {"floor_divide", two<floor_div>},
      {"mod", two<mod>},
      {"fmod", two<fmod>},
      {"bitwise_and", two<bitwise_and>},
      {"bitwise_or", two<bitwise_or>},
      {"bitwise_xor", two<bitwise_xor>},
      {"left_shift", two<left_shift>},
      {"right_shift", two<right_shift>},
      {"outer", two<outer>},
      {"squared_difference", two<squared_difference>},
      {"where", [](v x, p) -> list<var> { return {select(x[0], x[1], x[2])}; }},
      {"where_greater", [](v x, p) -> list<var> { return {select(x[0] > x[1], x[1], x[0])}; }},
      {"sum", folded<sum>},
      {"mean", folded<mean>},
      {"prod", folded<prod>},
      {"max", folded<max>},
      {"min", folded<min>},
      {"any", folded<any>},
      {"all", folded<all>},
      {"var", folded<variance>},
      {"norm", folded<l2_norm>},
      {"logsumexp", folded<logsumexp>},
      {"argmax", [](v x, p n) -> list<var> { return {argmax(x[0], n[0][0])}; }},
      {"argmin", [](v x, p n) -> list<var> { return {argmin(x[0], n[0][0])}; }},
      {"cumsum", [](v x, p n) -> list<var> { return {cumsum(x[0], n[0][0])}; }},
      {"cumprod", [](v x, p n) -> list<var> { return {cumprod(x[0], n[0][0])}; }},
      {"sort", [](v x, p n) -> list<var> { return {sort(x[0], n[0][0])}; }},
      {"argsort", [](v x, p n) -> list<var> { return {argsort(x[0], n[0][0])}; }},
      {"reshape", [](v x, p n) -> list<var> { return {reshape(x[0], shape_of(n[0]))}; }},
      {"transpose", [](v x, p n) -> list<var> { return {transpose(x[0], n[0])}; }},
      {"expand_dims", [](v x, p n) -> list<var> { return {expand_dims(x[0], n[0][0])}; }},
      {"squeeze", [](v x, p n) -> list<var> { return {squeeze(x[0], n[0][0])}; }},
      {"broadcast_to", [](v x, p n) -> list<var> { return {broadcast_to(x[0], shape_of(n[0]))}; }},
      {"tile", [](v x, p n) -> list<var> { return {tile(x[0], n[0])}; }},
      {"flip", [](v x, p n) -> list<var> { return {reverse(x[0], axis_list(n[0]))}; }},
      {"slice", [](v x, p n) -> list<var> { return {strided_slice(x[0], n[0], n[1], n[2])}; }},
      {"concatenate",
       [](v x, p n) -> list<var> {
         return {concat(span<const var>(x.data(), x.size()), n[0][0])};
       }},
      {"stack",
       [](v x, p n) -> list<var> { return {stack(span<const var>(x.data(), x.size()), n[0][0])}; }},
      {"split", [](v x, p n) -> list<var> { return split(x[0], n[0][0], n[1][0]); }},
      {"pad", [](v x, p n) -> list<var> { return {pad(x[0], n[0], n[1], n[2][0])}; }},
      {"pad_reflect", [](v x, p n) -> list<var> { return {pad_reflect(x[0], n[0], n[1])}; }},
      {"pad_edge", [](v x, p n) -> list<var> { return {pad_replicate(x[0], n[0], n[1])}; }},
      {"take", [](v x, p n) -> list<var> { return {gather(x[0], x[1], n[0][0])}; }},
      {"take_along_axis",
       [](v x, p n) -> list<var> { return {gather_elements(x[0], x[1], n[0][0])}; }},
      {"tril", [](v x, p n) -> list<var> { return {tril(x[0], n[0][0])}; }},
      {"triu", [](v x, p n) -> list<var> { return {triu(x[0], n[0][0])}; }},
      {"clip",
       [](v x, p n) -> list<var> { return {clamp(x[0], double(n[0][0]), double(n[0][1]))}; }},
      {"matmul",
       [](v x, p n) -> list<var> { return {matmul(x[0], x[1], n[0][0] != 0, n[0][1] != 0)}; }},
      {"tensordot", [](v x, p n) -> list<var> { return {tensor_dot(x[0], x[1], n[0], n[1])}; }},
      {"gammaln", one<lgamma>},
      {"digamma", one<digamma>},
      {"i0e", one<i0e>},
      {"i1e", one<i1e>},
      {"erfinv", one<erfinv>},
      {"exp2", one<exp2>},
      {"log10", one<log10>},
      {"sinc", one<sinc>},
      {"isnan", one<is_nan>},
      {"isinf", one<is_inf>},
      {"isfinite", one<is_finite>},
      {"logaddexp", two<logaddexp>},
      {"hypot", two<hypot>},
      {"xlogy", two<xlogy>},
      {"isclose", [](v x, p) -> list<var> { return {is_close(x[0], x[1])}; }},
      {"heaviside", [](v x, p) -> list<var> { return {heaviside(x[0], 0.5)}; }},
      {"nan_to_num", [](v x, p) -> list<var> { return {nan_to_num(x[0], 7, 100)}; }},
      {"std", [](v x, p n) -> list<var> { return {standard_deviation(x[0], n[0], n[1][0] != 0)}; }},
      {"vector_norm",
       [](v x, p n) -> list<var> {
         return {vector_norm(x[0], hundredths(n[2][0]), n[0], n[1][0] != 0)};
       }},
      {"count_nonzero", folded<count_nonzero>},
      {"diff", [](v x, p n) -> list<var> { return {diff(x[0], n[0][0])}; }},
      {"quantile",
       [](v x, p n) -> list<var> {
         return {quantile(x[0], hundredths(n[1][0]), n[0][0], n[2][0] != 0)};
       }},
      {"median", [](v x, p n) -> list<var> { return {median(x[0], n[0][0], n[1][0] != 0)}; }},
      {"bincount", [](v x, p n) -> list<var> { return {bincount(x[0], n[0][0])}; }},
      {"bincount_weights", [](v x, p n) -> list<var> { return {bincount(x[0], n[0][0], x[1])}; }},
      {"searchsorted",
       [](v x, p n) -> list<var> { return {searchsorted(x[0], x[1], n[0][0] != 0)}; }},
      {"histogram",
       [](v x, p n) -> list<var> { return {histogram(x[0], n[0][0], n[1][0], n[1][1])}; }},
      {"cummax", [](v x, p n) -> list<var> { return {cummax(x[0], n[0][0])}; }},
      {"cummin", [](v x, p n) -> list<var> { return {cummin(x[0], n[0][0])}; }},
      {"moveaxis", [](v x, p n) -> list<var> { return {move_axis(x[0], n[0][0], n[0][1])}; }},
      {"swapaxes", [](v x, p n) -> list<var> { return {swap_axes(x[0], n[0][0], n[0][1])}; }},
      {"repeat", [](v x, p n) -> list<var> { return {repeat(x[0], n[0][0], n[1][0])}; }},
      {"roll", [](v x, p n) -> list<var> { return {roll(x[0], n[0][0], n[1][0])}; }},
      {"rot90", [](v x, p n) -> list<var> { return {rot90(x[0], n[0][0])}; }},
      {"meshgrid",
       [](v x, p n) {
         return meshgrid({x[0], x[1], x[2]}, n[0][0] != 0);
       }},
      {"pad_symmetric", [](v x, p n) -> list<var> { return {pad_symmetric(x[0], n[0], n[1])}; }},
      {"pad_wrap", [](v x, p n) -> list<var> { return {pad_wrap(x[0], n[0], n[1])}; }},
      {"unique",
       [](v x, p n) -> list<var> {
         const auto u = unique(x[0], n[0][0], -3);
         return {u.values, u.counts, u.inverse, u.count};
       }},
      {"segment",
       [](v x, p n) -> list<var> {
         const int count = n[0][0];
         return {segment_sum(x[0], x[1], count), segment_max(x[0], x[1], count),
                 segment_min(x[0], x[1], count), segment_prod(x[0], x[1], count)};
       }},
      {"scatter_elements",
       [](v x, p n) -> list<var> {
         return {scatter_elements(x[0], x[1], x[2], n[0][0], scatter_mode(n[1][0]))};
       }},
      {"einsum",
       [](v x, p n) -> list<var> {
         return {
             einsum(std::string(n[0].begin(), n[0].end()), span<const var>(x.data(), x.size()))};
       }},
      {"cholesky", [](v x, p) -> list<var> { return {cholesky(x[0])}; }},
      {"solve", two<solve>},
      {"inv", one<inv>},
      {"det", one<det>},
      {"slogdet",
       [](v x, p) -> list<var> {
         const auto y = slogdet(x[0]);
         return {y.sign, y.logabsdet};
       }},
      {"qr",
       [](v x, p) -> list<var> {
         const auto y = qr(x[0]);
         return {y.q, y.r};
       }},
      {"eigvalsh", one<eigvalsh>},
      {"svdvals", [](v x, p) -> list<var> { return {svd(x[0]).s}; }},
      {"pinv", [](v x, p) -> list<var> { return {pinv(x[0])}; }},
      {"lstsq", two<lstsq>},
      {"matrix_power", [](v x, p n) -> list<var> { return {matrix_power(x[0], n[0][0])}; }},
      {"kron", two<kron>},
      {"fft", [](v x, p n) -> list<var> { return {fft(x[0], n[0][0])}; }},
      {"ifft", [](v x, p n) -> list<var> { return {ifft(x[0], n[0][0])}; }},
      {"rfft", [](v x, p n) -> list<var> { return {rfft(x[0], n[0][0])}; }},
      {"irfft", [](v x, p n) -> list<var> { return {irfft(x[0], n[1][0], n[0][0])}; }},
      {"fftn", [](v x, p n) -> list<var> { return {fftn(x[0], n[0])}; }},
      // The real part and the imaginary part, with factors, so that real numbers come out.
      {"rfft_parts",
       [](v x, p n) -> list<var> {
         const var y = rfft(x[0], n[0][0]);
         return {real(y) + imag(y) * 0.5};
       }},
      {"solve_shifted",
       [](v x, p) -> list<var> { return {solve(x[0] + detail::eye_like(x[0]) * 9, x[1])}; }},
      {"cholesky_shifted",
       [](v x, p) -> list<var> {
         return {cholesky(matmul(x[0], x[0], false, true) +
                          detail::eye_like(matmul(x[0], x[0], false, true)))};
       }},
      {"sigmoid", one<sigmoid>},
      {"softmax", [](v x, p n) -> list<var> { return {softmax(x[0], n[0][0])}; }},
      {"log_softmax", [](v x, p n) -> list<var> { return {log_softmax(x[0], n[0][0])}; }},
      {"astype", [](v x, p n) -> list<var> { return {cast(x[0], dtype(n[0][0]))}; }},
  };
  return table;
}

struct array {
  tensor_type type{};
  std::vector<std::byte> bytes;
};
array read_array(const json& j) {
  array a;
  for (int e = 0; e < int(dtype::record); ++e)
    if (name(dtype(e)) == j["dtype"].get<std::string>()) a.type.element = dtype(e);
  for (int e : j["shape"]) a.type.shape.push_back(e);
  const auto hex = j["bytes"].get<std::string>();
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    a.bytes.push_back(std::byte(std::stoi(hex.substr(i, 2), nullptr, 16)));
  if (a.bytes.size() != std::size_t(a.type.bytes())) throw std::runtime_error("wrong size");
  a.bytes.resize(a.bytes.size() + 8);  // so that there is an address
  return a;
}
json written(const tensor_ref& t) {
  static constexpr const char* digits = "0123456789abcdef";
  std::string hex;
  for (std::int64_t i = 0; i < t.type.bytes(); ++i) {
    const auto b = std::to_integer<unsigned>(t.data[i]);
    hex += {digits[b >> 4], digits[b & 15]};
  }
  return {{"dtype", std::string(name(t.type.element))},
          {"shape", std::vector<int>(t.type.shape.begin(), t.type.shape.end())},
          {"bytes", hex}};
}
/// A cell of as many arguments as there are.
graph traced(const function& f, const std::vector<array>& in, const std::vector<numbers>& n) {
  builder b;
  list<var> x;
  for (const array& a : in) x.push_back({&b, b.input(a.type, input_role::argument, "x")});
  ids out;
  for (const var& y : f(x, n)) {
    out.push_back(y.id);
    b.g.outputs.push_back({});
  }
  b.end(out);
  return std::move(b.g);
}
/// The function that a program is.
function composed(const json& program) {
  return [&program](const list<var>& in, const std::vector<numbers>&) {
    list<var> values = in;
    for (const json& step : program) {
      list<var> operands;
      for (std::size_t k : step[1]) operands.push_back(values[k]);
      values.push_back(functions().at(step[0])(operands, step[2])[0]);
    }
    const var y = values.back();
    list<var> all{y};
    for (const var& g : gradients(y, span<const var>(in.data(), in.size()))) all.push_back(g);
    return all;
  };
}
/// The results of a plan with so many threads.
json run_planned(const graph& g, dtype element, std::vector<array>& in, std::size_t results,
                 int threads) {
  thread_pool pool(threads);
  loaded_program run(g, element, &pool);
  for (std::size_t i = 0; i < in.size(); ++i) run.bind(int(i), in[i].bytes.data());
  run();
  json all = json::array();
  for (std::size_t k = 0; k < results; ++k) all.push_back(written(run.result(int(k))));
  return all;
}
json answer(const json& call) {
  try {
    std::vector<array> in;
    for (const json& x : call["in"]) in.push_back(read_array(x));
    const bool is_program = call.contains("program");
    const graph g = is_program ? traced(composed(call["program"]), in, {})
                               : traced(functions().at(call["f"]), in, call["n"]);
    json interpreted = json::array(), planned;
    value_store values;
    for (std::size_t i = 0; i < in.size(); ++i)
      values.bind(g.input(int(i)), {in[i].bytes.data(), in[i].type});
    interpret(g, values);
    for (node_id n : g.regions[0].outputs) interpreted.push_back(written(values.value(n)));

    const graph fast = compiled_once::optimize(g);
    dtype element = dtype::f32;
    for (const array& a : in)
      if (a.type.element == dtype::f64) element = dtype::f64;
    if (loaded_program::refusal(fast, element).empty()) {
      const std::size_t results = g.regions[0].outputs.size();
      planned = run_planned(fast, element, in, results, 1);
      if (is_program && run_planned(fast, element, in, results, 2) != planned)
        return {{"error", "two threads compute something else than one"}};
    }
    return {{"interpreted", interpreted}, {"planned", planned}};
  } catch (const std::exception& e) { return {{"error", e.what()}}; }
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);)
    std::cout << answer(json::parse(line)).dump() << "\n" << std::flush;
}
