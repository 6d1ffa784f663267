// expect-gcc: words_as_labels.cpp:27:54: error: template constraint failure for
// expect-gcc: 'template<class T>  requires  column_element<T> class cella::data::column'
// expect-clang: words_as_labels.cpp:27:36: error: constraints not satisfied for class template
// expect-clang: 'column'
// expect-lines: 32
// Labels are words.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>
#include <string>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset(data::column<float>({2, 10}, std::vector<float>(20)),
                             data::column<std::string>({2}, {"cat", "dog"})),
        {.epochs = 1});
}
