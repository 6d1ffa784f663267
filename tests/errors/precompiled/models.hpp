// What wrong programs with models include, most of them; see CMakeLists.txt.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/train/model.hpp>
