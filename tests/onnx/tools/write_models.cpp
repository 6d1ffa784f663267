// Writes nets as ONNX models, with an input and what Cella computes of it: NAME.onnx, NAME.x.npy,
// NAME.y.npy. runtime_peer.py runs the models with ONNX Runtime.
//
//   write_models FOLDER
#include <cella/interop/npy.hpp>
#include <cella/interop/onnx_model.hpp>
#include <cella/models/gpt.hpp>
#include <cella/models/lenet.hpp>
#include <cella/models/resnet.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/transform/trace.hpp>
#include <iostream>
#include <string>
#include <vector>

using namespace cella;

namespace {

template <class Net>
void write(const std::filesystem::path& folder, const std::string& name, const tensor_type& type) {
  Net net;
  const parameter_store store(net, 7);
  const graph g = trace(net, std::array{type});
  save_onnx(g, folder / (name + ".onnx"), store);
  std::vector<std::byte> x(std::size_t(type.bytes()));
  for (std::int64_t i = 0; i < type.size(); ++i)
    write_number(tensor_ref{x.data(), type}, i,
                 is_floating(type.element) ? double(i * 31 % 97) / 97 - 0.5 : double(i * 7 % 50));
  loaded_program program(compiled_once::optimize(g), dtype::f32);
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const auto* const own = store.find(g.view(g.inputs[i].name));
    program.bind(int(i), own ? store.value(*own).data : x.data());
  }
  program();
  const tensor_ref y = program.result(0);
  interop::write_npy(folder / (name + ".x.npy"), type, x);
  interop::write_npy(folder / (name + ".y.npy"), y.type, {y.data, std::size_t(y.type.bytes())});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_models FOLDER\n";
    return 2;
  }
  try {
    const std::filesystem::path folder = argv[1];
    std::filesystem::create_directories(folder);
    write<models::lenet5>(folder, "lenet5", {dtype::f32, {2, 1, 28, 28}});
    write<models::resnet20<>>(folder, "resnet20", {dtype::f32, {1, 3, 32, 32}});
    write<models::resnet50<>>(folder, "resnet50", {dtype::f32, {1, 3, 224, 224}});
    write<models::gpt<64, 64, 4, 2, 32>>(folder, "gpt", {dtype::i32, {2, 32}});
  } catch (const std::exception& e) {
    std::cerr << "write_models: " << e.what() << "\n";
    return 1;
  }
}
