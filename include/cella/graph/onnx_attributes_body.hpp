// What onnx_attributes.hpp declares.
#pragma once

#include <cella/graph/onnx_attributes.hpp>
#include <string>

namespace cella {

CELLA_BODY void onnx_attributes::set(std::string_view name, onnx_value value) {
  values_.push_back({std::string(name), std::move(value)});
}

CELLA_BODY const onnx_value* onnx_attributes::find(std::string_view name) const {
  for (const onnx_attribute& a : values_)
    if (a.name == name) return &a.value;
  return nullptr;
}

CELLA_BODY std::int32_t onnx_attributes::integer(std::string_view name,
                                                 std::int32_t otherwise) const {
  const onnx_value* v = find(name, onnx_kind::integer, "an INT");
  return v ? narrow(name, v->integer) : otherwise;
}

CELLA_BODY float onnx_attributes::number(std::string_view name, float otherwise) const {
  const onnx_value* v = find(name, onnx_kind::number, "a FLOAT");
  return v ? v->number : otherwise;
}

CELLA_BODY std::string onnx_attributes::string(std::string_view name, const char* otherwise) const {
  const onnx_value* v = find(name, onnx_kind::string, "a STRING");
  return v ? v->string : otherwise;
}

CELLA_BODY list<std::int32_t> onnx_attributes::integers(std::string_view name) const {
  list<std::int32_t> all;
  if (const onnx_value* v = find(name, onnx_kind::integers, "INTS"))
    for (std::int64_t i : v->integers) all.push_back(narrow(name, i));
  return all;
}

CELLA_BODY dtype onnx_attributes::element(std::string_view name) const {
  const onnx_value* v = find(name);
  if (!v) refuse(name, "is missing");
  if (v->kind == onnx_kind::element) return v->element;
  const dtype t = dtype_of_onnx(integer(name, 0));
  if (t == dtype::tuple) refuse(name, "names an element type that Cella lacks");
  return t;
}

CELLA_BODY std::int32_t onnx_attributes::axis(std::string_view name, std::int32_t otherwise,
                                              int rank) const {
  return axis_of(name, integer(name, otherwise), rank);
}

CELLA_BODY std::int32_t onnx_attributes::axis_of(std::string_view name, std::int32_t axis,
                                                 int rank) const {
  if (axis < -rank || axis >= rank)
    refuse(name, "names axis " + std::to_string(axis) + " of " + std::to_string(rank));
  return axis < 0 ? axis + rank : axis;
}

CELLA_BODY void onnx_attributes::only(std::initializer_list<std::string_view> known) const {
  for (const onnx_attribute& a : values_) {
    bool found = false;
    for (std::string_view k : known) found |= k == a.name;
    if (!found) refuse(a.name, "is unknown to Cella");
  }
}

CELLA_BODY void onnx_attributes::must_be(std::string_view name, std::int32_t value,
                                         std::int32_t otherwise) const {
  if (integer(name, otherwise) != value) refuse(name, "must be " + std::to_string(value) + " here");
}

[[noreturn]] CELLA_BODY void onnx_attributes::refuse(std::string_view name,
                                                     const std::string& why) const {
  throw file_error("the attribute \"" + std::string(name.substr(0, 40)) +
                   "\" of the ONNX operator " + op_ + " " + why);
}

CELLA_BODY const onnx_value* onnx_attributes::find(std::string_view name, onnx_kind kind,
                                                   const char* called) const {
  const onnx_value* v = find(name);
  if (v && v->kind != kind) refuse(name, std::string("must be ") + called);
  return v;
}

CELLA_BODY std::int32_t onnx_attributes::narrow(std::string_view name, std::int64_t v) const {
  if (v != std::int32_t(v)) refuse(name, "is larger than 32 bits");
  return std::int32_t(v);
}

}  // namespace cella
