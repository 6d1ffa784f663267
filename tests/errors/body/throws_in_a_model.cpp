// expect-gcc: throws_in_a_model.cpp:17:28: error: expression '<throw-expression>' is not a constant
// expect-gcc: expression
// expect-clang: throws_in_a_model.cpp:17:28: note: subexpression not valid in a constant expression
// expect-lines: 89
// A model's net throws.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>
#include <stdexcept>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    if (x.extent(1) != 11) throw std::runtime_error("wrong");
    return fc(x);
  }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
