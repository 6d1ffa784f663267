"""Recipe for Conan 2: `conan create cmake/conan`.

The package has the headers and the CMake package of `cmake --install`, which finds what Cella builds on as it does
without Conan: on the machine, in packages that the consumer requires by Conan, or by fetching it.
"""

import pathlib
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy

# What is installed, and what installs it.
SOURCES = ["include/*", "cmake/*", "CMakeLists.txt", "LICENSE"]


class Cella(ConanFile):
    name = "cella"
    license = "Apache-2.0"
    description = "A header-only C++20 deep-learning library whose graphs are made by the compiler"
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"

    def sources_at(self):
        return pathlib.Path(self.recipe_folder).parent.parent

    def set_version(self):
        text = (self.sources_at() / "CMakeLists.txt").read_text()
        self.version = re.search(r"VERSION ([\d.]+)\n", text).group(1)

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, self.sources_at(), self.export_sources_folder)

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("EXAMPLES", "TESTS", "BENCHMARKS"):
            toolchain.cache_variables[f"CELLA_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()

    def package_id(self):
        self.info.clear()

    def package_info(self):
        # find_package(cella) reads the package's own files, which define the targets and their flags.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["share/cmake/cella"]
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
