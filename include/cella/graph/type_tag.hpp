// Types as values that can be compared.
#pragma once

namespace cella {

/// Its address stands for a type.
template <class T>
inline constexpr char type_tag{};

}  // namespace cella
