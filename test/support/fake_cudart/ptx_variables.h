// Module variables: where each lies in the program's memory, and its first values.
#pragma once

#include "device/cuda/ptx/module.h"
#include "gpusched/status.h"
#include "support/fake_cudart/ptx_code.h"
#include "support/fake_cudart/ptx_names.h"

namespace gpusched::test::ptx {

class VariableReader {
 public:
  VariableReader(const device::ptx::Module& module, Meanings& globals, DecodedProgram& program)
      : module_(module), globals_(globals), program_(program) {}

  Status Read();
  // After Read, once the functions are known: a value may be the address of one.
  Status Initialize();

 private:
  Status InitializeOne(const device::ptx::Variable& variable);
  std::byte* Place(const CodeVariable& variable, std::uint64_t at) {
    return program_.memory.data() + variable.offset + at;
  }

  const device::ptx::Module& module_;
  Meanings& globals_;
  DecodedProgram& program_;
};

}  // namespace gpusched::test::ptx
