// expect: output_without_classes.cpp:14: the loss of this output: softmax_cross_entropy: needs
// expect: logits [N,C] and labels [N]: sum result is f32[32], y is i32[]
// expect-lines: 36
// The loss does not fit the output.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return sum(fc(x), {1}); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
