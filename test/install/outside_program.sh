#!/bin/sh
# Builds and links a program outside the tree against an installed gpusched, through CMake and through
# pkg-config. Usage: outside_program.sh BUILD_FOLDER PROGRAM_FOLDER CMAKE COMPILER
set -eu
build=$1 program=$2 cmake=$3 compiler=$4

if ! command -v pkg-config >/dev/null; then
  echo "pkg-config is missing"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$cmake" --install "$build" --component client --prefix "$folder/first" >/dev/null
# The tree may be moved after it was installed.
mv "$folder/first" "$folder/prefix"
prefix=$folder/prefix

# Nothing of gRPC or protobuf, and nothing of this source tree, is needed to compile against it.
if grep -rlE 'grpc|protobuf|\.pb\.h' "$prefix/include"; then
  echo "a public header names what the library hides"
  exit 1
fi

"$cmake" -S "$program" -B "$folder/cmake" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" >/dev/null
"$cmake" --build "$folder/cmake" >/dev/null

config=$(dirname "$(find "$prefix" -name gpusched.pc)")
export PKG_CONFIG_PATH="$config"
# The flags are words by intent.
# shellcheck disable=SC2046
"$compiler" -std=c++20 $(pkg-config --cflags gpusched) "$program/outside.cc" \
  -o "$folder/with_pkg_config" $(pkg-config --libs gpusched)

# Both load the library by its versioned name from the prefix.
for binary in "$folder/cmake/outside" "$folder/with_pkg_config"; do
  LD_LIBRARY_PATH=$(dirname "$config") ldd "$binary" | grep -F "libgpusched.so.0 => $prefix"
done
