// Readers and writers of tensor files: NumPy's .npy, and safetensors. Options of operations as
// attributes of ONNX, and as JSON; graphs as JSON and CBOR; models from ONNX files. All but .npy and
// ONNX need nlohmann/json.
#pragma once

#include <cella/interop/file.hpp>
#include <cella/interop/npy.hpp>
#include <cella/interop/onnx.hpp>
#include <cella/interop/onnx_model.hpp>
#if __has_include(<nlohmann/json.hpp>)
#include <cella/interop/graph_file.hpp>
#include <cella/interop/option_json.hpp>
#include <cella/interop/safetensors.hpp>
#endif
