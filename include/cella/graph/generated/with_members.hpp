// Generated: the members of an aggregate, found by structured bindings.
#pragma once

namespace cella::detail {

inline constexpr int most_members = 32;

/// f(members of x...), which are `Count`.
template <int Count, class T, class F>
constexpr decltype(auto) with_members(T& x, F&& f) {
  if constexpr (Count == 0) {
    (void)x;
    return f();
  } else if constexpr (Count == 1) {
    auto& [m0] = x;
    return f(m0);
  } else if constexpr (Count == 2) {
    auto& [m0, m1] = x;
    return f(m0, m1);
  } else if constexpr (Count == 3) {
    auto& [m0, m1, m2] = x;
    return f(m0, m1, m2);
  } else if constexpr (Count == 4) {
    auto& [m0, m1, m2, m3] = x;
    return f(m0, m1, m2, m3);
  } else if constexpr (Count == 5) {
    auto& [m0, m1, m2, m3, m4] = x;
    return f(m0, m1, m2, m3, m4);
  } else if constexpr (Count == 6) {
    auto& [m0, m1, m2, m3, m4, m5] = x;
    return f(m0, m1, m2, m3, m4, m5);
  } else if constexpr (Count == 7) {
    auto& [m0, m1, m2, m3, m4, m5, m6] = x;
    return f(m0, m1, m2, m3, m4, m5, m6);
  } else if constexpr (Count == 8) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7);
  } else if constexpr (Count == 9) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8);
  } else if constexpr (Count == 10) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9);
  } else if constexpr (Count == 11) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10);
  } else if constexpr (Count == 12) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11);
  } else if constexpr (Count == 13) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12);
  } else if constexpr (Count == 14) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13);
  } else if constexpr (Count == 15) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14);
  } else if constexpr (Count == 16) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15);
  } else if constexpr (Count == 17) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16);
  } else if constexpr (Count == 18) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17);
  } else if constexpr (Count == 19) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18);
  } else if constexpr (Count == 20) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19);
  } else if constexpr (Count == 21) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20);
  } else if constexpr (Count == 22) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21);
  } else if constexpr (Count == 23) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22);
  } else if constexpr (Count == 24) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23);
  } else if constexpr (Count == 25) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24);
  } else if constexpr (Count == 26) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25);
  } else if constexpr (Count == 27) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26);
  } else if constexpr (Count == 28) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27);
  } else if constexpr (Count == 29) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28);
  } else if constexpr (Count == 30) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29);
  } else if constexpr (Count == 31) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30);
  } else if constexpr (Count == 32) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31] = x;
    return f(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31);
  }
}

/// Whether nothing can refer to one of the members of x, which are `Count`: a bit-field.
template <int Count, class T>
constexpr bool has_bit_field([[maybe_unused]] T& x) {
  if constexpr (Count == 0) {
    return false;
  } else if constexpr (Count == 1) {
    auto& [m0] = x;
    return !requires { &m0; };
  } else if constexpr (Count == 2) {
    auto& [m0, m1] = x;
    return !requires { &m0; &m1; };
  } else if constexpr (Count == 3) {
    auto& [m0, m1, m2] = x;
    return !requires { &m0; &m1; &m2; };
  } else if constexpr (Count == 4) {
    auto& [m0, m1, m2, m3] = x;
    return !requires { &m0; &m1; &m2; &m3; };
  } else if constexpr (Count == 5) {
    auto& [m0, m1, m2, m3, m4] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; };
  } else if constexpr (Count == 6) {
    auto& [m0, m1, m2, m3, m4, m5] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; };
  } else if constexpr (Count == 7) {
    auto& [m0, m1, m2, m3, m4, m5, m6] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; };
  } else if constexpr (Count == 8) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; };
  } else if constexpr (Count == 9) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; };
  } else if constexpr (Count == 10) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; };
  } else if constexpr (Count == 11) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; };
  } else if constexpr (Count == 12) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; };
  } else if constexpr (Count == 13) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; };
  } else if constexpr (Count == 14) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; };
  } else if constexpr (Count == 15) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; };
  } else if constexpr (Count == 16) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; };
  } else if constexpr (Count == 17) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; };
  } else if constexpr (Count == 18) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; };
  } else if constexpr (Count == 19) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; };
  } else if constexpr (Count == 20) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; &m19; };
  } else if constexpr (Count == 21) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; &m19; &m20; };
  } else if constexpr (Count == 22) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; &m19; &m20; &m21; };
  } else if constexpr (Count == 23) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; &m19; &m20; &m21; &m22; };
  } else if constexpr (Count == 24) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; &m19; &m20; &m21; &m22; &m23; };
  } else if constexpr (Count == 25) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; &m19; &m20; &m21; &m22; &m23; &m24; };
  } else if constexpr (Count == 26) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; &m19; &m20; &m21; &m22; &m23; &m24; &m25; };
  } else if constexpr (Count == 27) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; &m19; &m20; &m21; &m22; &m23; &m24; &m25; &m26; };
  } else if constexpr (Count == 28) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; &m19; &m20; &m21; &m22; &m23; &m24; &m25; &m26; &m27; };
  } else if constexpr (Count == 29) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; &m19; &m20; &m21; &m22; &m23; &m24; &m25; &m26; &m27; &m28; };
  } else if constexpr (Count == 30) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; &m19; &m20; &m21; &m22; &m23; &m24; &m25; &m26; &m27; &m28; &m29; };
  } else if constexpr (Count == 31) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; &m19; &m20; &m21; &m22; &m23; &m24; &m25; &m26; &m27; &m28; &m29; &m30; };
  } else if constexpr (Count == 32) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31] = x;
    return !requires { &m0; &m1; &m2; &m3; &m4; &m5; &m6; &m7; &m8; &m9; &m10; &m11; &m12; &m13; &m14; &m15; &m16; &m17; &m18; &m19; &m20; &m21; &m22; &m23; &m24; &m25; &m26; &m27; &m28; &m29; &m30; &m31; };
  }
}

/// Whether T can be initialized by `Count` pairs of empty braces.
template <int Count, class T>
inline constexpr bool takes_braces = false;
template <class T>
requires requires { T{{}}; }
inline constexpr bool takes_braces<1, T> = true;
template <class T>
requires requires { T{{}, {}}; }
inline constexpr bool takes_braces<2, T> = true;
template <class T>
requires requires { T{{}, {}, {}}; }
inline constexpr bool takes_braces<3, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}}; }
inline constexpr bool takes_braces<4, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<5, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<6, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<7, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<8, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<9, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<10, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<11, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<12, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<13, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<14, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<15, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<16, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<17, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<18, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<19, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<20, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<21, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<22, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<23, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<24, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<25, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<26, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<27, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<28, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<29, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<30, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<31, T> = true;
template <class T>
requires requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }
inline constexpr bool takes_braces<32, T> = true;

}  // namespace cella::detail
