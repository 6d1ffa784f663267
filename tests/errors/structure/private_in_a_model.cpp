// expect: Net: its members cannot be found: they are private, or there is a constructor or a
// expect: virtual base; write a struct without these, whose members have their values where they
// expect: are declared
// expect-lines: 21
// A model's net has private members.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

class Net {
  nn::dense<10, 10> fc;

 public:
  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
