// An OpenCL driver that ends the process as soon as it is asked for its platforms.
#include <cstdlib>

extern "C" {

int clIcdGetPlatformIDsKHR(unsigned, void**, unsigned*) { std::abort(); }
// The loader asks for both; the first is found through this one.
void* clGetExtensionFunctionAddress(const char*) {
  return reinterpret_cast<void*>(&clIcdGetPlatformIDsKHR);
}

}  // extern "C"
