// The columns of a batch of data as a model takes them: the inputs, then the targets.
#pragma once

#include <array>
#include <cella/data/sample.hpp>
#include <cella/data/tensor.hpp>
#include <cella/train/columns.hpp>
#include <cella/train/metrics.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace cella::detail {

/// Column `I` of a batch as elements of type T, converted into `buffer` if need be; `columns_fault`
/// knows that it can be. Throws `error` unless a row is a `sample` of the model.
template <class T, std::size_t I, class Batch>
const T* column_of(const Batch& b, const shape& sample, const text& what, std::vector<T>& buffer) {
  const auto column = b.template column<I>();
  using U = typename decltype(column)::value_type;
  shape row = column.extents();
  row.erase(0);
  if (row != sample) {
    const char* const remedy =
        sample.rank > 0 ? "; reshape the data, or change the model's input or loss"
                        : ", one number each; make the column's extents {n} (of one-hot rows take "
                          "the class), or change the model's loss";
    throw error(text() << "the data's " << what << " are " << row << " per sample, but the model's "
                       << sample << remedy);
  }
  if constexpr (std::is_same_v<T, U>) {
    return column.data();
  } else {
    buffer.assign(column.begin(), column.end());
    return buffer.data();
  }
}

/// What messages call column `I` of the data for a model: the members of structs by their names.
template <class Engine, std::size_t I>
constexpr text name_of_column() {
  constexpr bool input = I < Engine::input_count;
  using owner = std::conditional_t<input, typename Engine::input_type, typename Engine::labels>;
  if constexpr (sample_spec<owner> || std::is_same_v<owner, var>)
    return text() << (input ? "inputs" : "targets");
  else
    return text() << "\"" << member_name < owner,
           input ? I : I - Engine::input_count > () << "\" (column " << I << ")";
}
template <class Engine, std::size_t I>
inline constexpr text column_name = name_of_column<Engine, I>();

/// Why batches of type `Batch` cannot be columns of the model; empty if they can. Extents are known
/// at run time only.
template <class Engine, class Batch>
constexpr text find_columns_fault() {
  constexpr std::size_t needed = Engine::input_count + Engine::target_count;
  text fault;
  if constexpr (Batch::width < needed) {
    fault << "the data have " << Batch::width << (Batch::width == 1 ? " column" : " columns")
          << ", but the model takes " << needed << ":";
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((fault << (I ? ", " : " ") << column_name<Engine, I>), ...);
    }
    (std::make_index_sequence<needed>{});
  } else {
    const auto check = [&]<std::size_t I, class Element>() {
      using own = typename decltype(std::declval<const Batch&>().template column<I>())::value_type;
      if (!fault.empty() || std::is_floating_point_v<own> == std::is_floating_point_v<Element>)
        return;
      const auto kind = [](bool floating) { return floating ? "numbers" : "integers"; };
      fault << "the data's " << column_name<Engine, I> << " are "
            << kind(std::is_floating_point_v<own>) << ", but the model's are "
            << kind(std::is_floating_point_v<Element>);
      if (I >= Engine::input_count && std::is_same_v<typename Engine::labels, var> &&
          std::integral<own>)
        fault << "; a loss of labels is cross_entropy_loss, or takes them as a struct: "
                 "struct truth { integers<> label; }";
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (check.template operator()<I, typename Engine::input_columns::template at<I>>(), ...);
    }
    (std::make_index_sequence<Engine::input_count>{});
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (check.template
       operator()<Engine::input_count + I, typename Engine::target_columns::template at<I>>(),
       ...);
    }
    (std::make_index_sequence<Engine::target_count>{});
  }
  return fault;
}
template <class Engine, class Batch>
inline constexpr text columns_fault = find_columns_fault<Engine, Batch>();

/// One batch after the other, converted where the model's element types are others. On a mesh a
/// rank has its share of the samples, until it asks for all.
template <class Engine>
struct batch_columns {
  typename Engine::inputs inputs{};
  typename Engine::targets targets{};
  /// On a mesh: column k of all samples, of which `own` are this rank's.
  std::function<void(std::size_t k, const tensor_ref& own, const tensor_ref& whole)> join{};

  /// Of batches without a `columns_fault`, for a model with such targets; they are a share of
  /// batches of `rows` samples. Throws `error`, which names the column, unless its extents are the
  /// model's.
  template <class Batch, class Types>
  void read(const Batch& b, std::int64_t rows, const Types& target_types) {
    constexpr std::size_t count = Engine::input_count;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((inputs[I] = byte_address(column_of<typename Engine::input_columns::template at<I>, I>(
            b, Engine::specs::extents[I], column_name<Engine, I>, std::get<I>(buffers_)))),
       ...);
    }
    (std::make_index_sequence<count>{});
    input_types_ = Engine::for_rows(Engine::input_types, b.size());
    target_types_ = Engine::for_rows(target_types, b.size());
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((targets[I] =
            byte_address(column_of<typename Engine::target_columns::template at<I>, count + I>(
                b, of_sample(target_types[I].shape), column_name<Engine, count + I>,
                std::get<I>(target_buffers_)))),
       ...);
    }
    (std::make_index_sequence<Engine::target_count>{});
    whole_inputs_ = Engine::for_rows(Engine::input_types, rows);
    whole_targets_ = Engine::for_rows(target_types, rows);
    lacks_inputs_ = lacks_targets_ = bool(join);
  }
  /// The inputs, or the targets, are those of all samples from now on.
  void complete_inputs() {
    if (!std::exchange(lacks_inputs_, false)) return;
    for (std::size_t k = 0; k < Engine::input_count; ++k)
      complete(k, inputs[k], input_types_[k], whole_inputs_[k]);
  }
  void complete_targets() {
    if (!std::exchange(lacks_targets_, false)) return;
    for (std::size_t k = 0; k < Engine::target_count; ++k)
      complete(Engine::input_count + k, targets[k], target_types_[k], whole_targets_[k]);
  }

  /// Its columns of numbers, with what messages call them.
  std::vector<std::pair<text, tensor_ref>> numbers() const {
    std::vector<std::pair<text, tensor_ref>> all;
    const auto add = [&](const text& name, std::byte* at, const tensor_type& type) {
      if (is_floating(type.element)) all.emplace_back(name, tensor_ref{at, type});
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (add(column_name<Engine, I>, inputs[I], input_types_[I]), ...);
    }
    (std::make_index_sequence<Engine::input_count>{});
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (add(column_name<Engine, Engine::input_count + I>, targets[I], target_types_[I]), ...);
    }
    (std::make_index_sequence<Engine::target_count>{});
    return all;
  }

  /// Hands predictions for the whole batch to a metric.
  template <class M>
  void update(M& m, const std::array<tensor_ref, Engine::output_count>& prediction) {
    const auto y = Engine::output_columns::view(prediction);
    constexpr bool supervised = Engine::target_count > 0;
    complete_targets();
    const auto t = view_of_targets();
    if constexpr (supervised && requires { m.update(y, t); })
      m.update(y, t);
    else if constexpr (supervised && requires { m.update(y, view_of_inputs(), t); })
      m.update(y, view_of_inputs(), t);
    else if constexpr (!supervised && requires { m.update(y, view_of_inputs()); })
      m.update(y, view_of_inputs());
    else
      static_assert(!sizeof(M),
                    "a metric has update(prediction, target) or update(prediction, inputs, target) "
                    "with data::tensor_view, or tuples of them where there are several, or "
                    "update(loss, rows)");
  }

 private:
  static shape of_sample(shape batch) {
    if (batch.rank) batch.erase(0);
    return batch;
  }
  void complete(std::size_t k, std::byte*& at, tensor_type& type, const tensor_type& whole) {
    whole_[k].resize(std::size_t(whole.bytes()));
    join(k, {at, type}, {whole_[k].data(), whole});
    at = whole_[k].data();
    type = whole;
  }
  auto view_of_inputs() {
    complete_inputs();
    return Engine::input_columns::view(memory_of(inputs, input_types_));
  }
  auto view_of_targets() const {
    if constexpr (Engine::target_count > 0)
      return Engine::target_columns::view(memory_of(targets, target_types_));
    else
      return nullptr;
  }

  typename Engine::input_columns::buffers buffers_;
  typename Engine::target_columns::buffers target_buffers_;
  std::array<tensor_type, Engine::input_count> input_types_{};
  std::array<tensor_type, Engine::traced_targets.size()> target_types_{};
  std::array<tensor_type, Engine::input_count> whole_inputs_{};
  std::array<tensor_type, Engine::traced_targets.size()> whole_targets_{};
  std::array<std::vector<std::byte>, Engine::input_count + Engine::target_count> whole_;
  bool lacks_inputs_ = false, lacks_targets_ = false;
};

}  // namespace cella::detail
