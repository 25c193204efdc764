// The stand-in's device memory, pinned memory, copies, streams and events.
#include <cstring>
#include <utility>

#include "support/fake_cudart/runtime_state.h"

using namespace gpusched::test;  // NOLINT: the functions below stand in no namespace

namespace {

std::uintptr_t AddressOf(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// The allocation that holds all of [address, address + bytes), kept alive; the runtime is locked.
std::shared_ptr<Allocation> Holding(Runtime& all, std::uintptr_t address, std::size_t bytes) {
  auto after = all.allocations.upper_bound(address);
  if (after == all.allocations.begin()) return nullptr;
  --after;
  const std::size_t into = address - after->first;
  if (into > after->second->size || bytes > after->second->size - into) return nullptr;
  return after->second;
}

bool IsPinned(Runtime& all, std::uintptr_t address, std::size_t bytes) {
  auto after = all.pinned.upper_bound(address);
  if (after == all.pinned.begin()) return false;
  --after;
  return address - after->first + bytes <= after->second.size;
}

}  // namespace

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const int device = CurrentDevice();
  return AtOnce(__func__, device, [=](Runtime& all) {
    *total = all.driver.gpus[static_cast<std::size_t>(device)].memory_bytes;
    *free = *total - all.used_bytes[static_cast<std::size_t>(device)];
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return AtOnce(__func__, device, [=](Runtime&) {
    *pool = reinterpret_cast<cudaMemPool_t>(static_cast<std::uintptr_t>(device) + 1);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return Answer(Enter(__func__, CurrentDevice()));
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t size, cudaStream_t stream) {
  return AtOnce(__func__, stream->device, [=](Runtime& all) {
    const auto device = static_cast<std::size_t>(stream->device);
    if (size > all.driver.gpus[device].memory_bytes - all.used_bytes[device]) {
      return cudaErrorMemoryAllocation;
    }
    auto allocation = std::make_shared<Allocation>(size);
    std::memset(allocation->bytes.get(), 0xD7, size);  // what was there before is nobody's business
    allocation->device = stream->device;
    all.used_bytes[device] += size;
    *pointer = allocation->bytes.get();
    all.allocations.emplace(AddressOf(*pointer), std::move(allocation));
    return cudaSuccess;
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  const cudaError_t error = AtOnce(__func__, stream->device, [=](Runtime& all) {
    return all.allocations.contains(AddressOf(pointer)) ? cudaSuccess : cudaErrorInvalidValue;
  });
  if (error != cudaSuccess) return error;
  stream->Append([pointer] {
    Runtime& all = runtime();
    const std::lock_guard lock(all.mutex);
    const auto found = all.allocations.find(AddressOf(pointer));
    all.used_bytes[static_cast<std::size_t>(found->second->device)] -= found->second->size;
    all.allocations.erase(found);
    return cudaSuccess;
  });
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t size, unsigned int) {
  return AtOnce(__func__, CurrentDevice(), [=](Runtime& all) {
    std::unique_ptr<std::byte[]> bytes(new std::byte[size]);
    *pointer = bytes.get();
    all.pinned[AddressOf(*pointer)] = {std::move(bytes), size};
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* pointer) {
  bool known = false;
  const cudaError_t error = InAnyCase(__func__, CurrentDevice(), [&](Runtime& all) {
    known = all.pinned.erase(AddressOf(pointer)) > 0;
  });
  return known ? error : Answer(cudaErrorInvalidValue);
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t count,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  const bool in = kind == cudaMemcpyHostToDevice;
  std::shared_ptr<Allocation> on_device;
  bool pinned = false;
  const cudaError_t error = AtOnce(__func__, stream->device, [&](Runtime& all) {
    on_device = Holding(all, AddressOf(in ? target : source), count);
    pinned = IsPinned(all, AddressOf(in ? source : target), count);
    return on_device != nullptr && (in || kind == cudaMemcpyDeviceToHost) ? cudaSuccess
                                                                          : cudaErrorInvalidValue;
  });
  if (error != cudaSuccess) return error;
  if (in && !pinned) {
    // Such bytes are taken before the call returns.
    const auto* begin = static_cast<const std::byte*>(source);
    stream->Append([target, on_device, staged = std::vector<std::byte>(begin, begin + count)] {
      std::memcpy(target, staged.data(), staged.size());
      return cudaSuccess;
    });
    return cudaSuccess;
  }
  stream->Append([target, source, count, on_device] {
    std::memcpy(target, source, count);
    return cudaSuccess;
  });
  if (!pinned) stream->Drain();  // into such memory the call is no asynchronous one
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t count, cudaStream_t stream) {
  std::shared_ptr<Allocation> on_device;
  const cudaError_t error = AtOnce(__func__, stream->device, [&](Runtime& all) {
    on_device = Holding(all, AddressOf(target), count);
    return on_device != nullptr ? cudaSuccess : cudaErrorInvalidValue;
  });
  if (error != cudaSuccess) return error;
  stream->Append([target, value, count, on_device] {
    std::memset(target, value, count);
    return cudaSuccess;
  });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int priority) {
  const int device = CurrentDevice();
  return AtOnce(__func__, device, [=](Runtime& all) {
    *stream = new CUstream_st(device, priority);
    ++all.streams;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const cudaError_t error =
      InAnyCase(__func__, stream->device, [](Runtime& all) { --all.streams; });
  delete stream;  // what it still runs may need the runtime
  return error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = Enter(__func__, stream->device); error != cudaSuccess) {
    return Answer(error);
  }
  stream->Drain();
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  return Answer(all.broken[static_cast<std::size_t>(stream->device)]);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t error = Enter(__func__, stream->device); error != cudaSuccess) {
    return Answer(error);
  }
  return stream->idle() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  const int device = CurrentDevice();
  return AtOnce(__func__, device, [=](Runtime& all) {
    *event = new CUevent_st;
    (*event)->device = device;
    ++all.events;
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return InAnyCase(__func__, event->device, [=](Runtime& all) {
    delete event;
    --all.events;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  std::uint64_t record = 0;
  const cudaError_t error = AtOnce(__func__, stream->device, [&](Runtime&) {
    if (event->device != stream->device) return cudaErrorInvalidResourceHandle;
    record = ++event->mark->recorded;
    return cudaSuccess;
  });
  if (error != cudaSuccess) return error;
  stream->Append([mark = event->mark, record] {
    const std::lock_guard passed(runtime().mutex);
    mark->reached = record;
    mark->time = std::chrono::steady_clock::now();
    return cudaSuccess;
  });
  return cudaSuccess;
}

// Not ready is an answer, which is not remembered as an error.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  bool reached = false;
  const cudaError_t error = AtOnce(__func__, event->device, [&](Runtime&) {
    reached = event->mark->reached == event->mark->recorded;
    return cudaSuccess;
  });
  return error == cudaSuccess && !reached ? cudaErrorNotReady : error;
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return AtOnce(__func__, start->device, [=](Runtime&) {
    const CUevent_st::Mark &first = *start->mark, &second = *end->mark;
    if (first.recorded == 0 || second.recorded == 0) return cudaErrorInvalidResourceHandle;
    if (first.reached != first.recorded || second.reached != second.recorded) {
      return cudaErrorNotReady;
    }
    *ms = std::chrono::duration<float, std::milli>(second.time - first.time).count();
    return cudaSuccess;
  });
}
