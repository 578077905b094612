// Eight simulated cards: memory of the host, tagged with a card's number. Every operator computes on the CPU, so that a training
// on a card gives the CPU's digits. Loaded with ctypes; the registrations below run as the library is loaded.
//
// torch 2.13 has a device type for plugins to name (PrivateUse1). torch 1.12 has none that works, and plugins of its time showed
// their cards as xla:N; with OLD_TORCH this file does the same, in C++14.
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>
#ifndef OLD_TORCH
#include <ATen/detail/PrivateUse1HooksInterface.h>
#endif

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace {

using at::IntArrayRef;
using at::Tensor;
#ifdef OLD_TORCH
#define CARDS_KEY XLA
#define CONST_IN_OLD_TORCH const
#define OVERRIDE_IN_NEW_TORCH
using c10::optional;
#define CHECK_MEMORY(...) TORCH_CHECK(__VA_ARGS__)  // Without a type of its own for the error.
#else
#define CARDS_KEY PrivateUse1
#define CONST_IN_OLD_TORCH
#define OVERRIDE_IN_NEW_TORCH override
using std::optional;
#define CHECK_MEMORY(...) TORCH_CHECK_WITH(OutOfMemoryError, __VA_ARGS__)
#endif
constexpr auto GCU = c10::DeviceType::CARDS_KEY;
const c10::DispatchKeySet keys(c10::DispatchKey::CARDS_KEY);
constexpr int CARDS = 8;

thread_local c10::DeviceIndex current = 0;
thread_local std::array<c10::StreamId, CARDS> streams{};
std::atomic<bool> initialized{false};  // True from the first allocation or set_device on, as with a driver's context.
std::array<std::atomic<int64_t>, CARDS> allocated{}, peak{};

int64_t number(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::atoll(text) : otherwise;
}

// As many cards as the variable names; which ones is of no interest here. Read once, as a driver does.
int card_count() {
  static const int count = [] {
    const char* visible = std::getenv("TOPS_VISIBLE_DEVICES");
    if (!visible) return CARDS;
    const std::string names(visible);
    return names.empty() ? 0 : std::min<int>(CARDS, 1 + std::count(names.begin(), names.end(), ','));
  }();
  return count;
}

void check(c10::DeviceIndex card) {
  TORCH_CHECK(card >= 0 && card < card_count(), "GCU error: invalid device ordinal ", int(card), ", ", card_count(), " cards are visible");
}

void set_current(c10::DeviceIndex card) {
  check(card);
  initialized = true;
  current = card;
}

// ---- Memory

struct Block {
  void* data;
  int64_t bytes;
  c10::DeviceIndex card;
};

void release(void* context) {
  auto* block = static_cast<Block*>(context);
  allocated[block->card] -= block->bytes;
  std::free(block->data);
  delete block;
}

struct CardAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) CONST_IN_OLD_TORCH override {
    static const int64_t limit = number("TORCH_GCU_MEMORY_MB", 32768) << 20;
    const auto card = current;
    check(card);
    initialized = true;
    const int64_t total = allocated[card] + int64_t(bytes);
    CHECK_MEMORY(total <= limit, "GCU out of memory. Tried to allocate ", bytes >> 20, " MiB. GCU ", int(card),
        " has a total capacity of ", limit >> 20, " MiB of which ", (limit - allocated[card]) >> 20, " MiB is free.");
    // 64 bytes is the alignment of torch's CPU allocator: another one lets vectorised kernels take other paths and round otherwise.
    void* data = bytes ? ::aligned_alloc(64, (bytes + 63) / 64 * 64) : nullptr;
    allocated[card] = total;
    peak[card] = std::max<int64_t>(peak[card], total);
    return {data, new Block{data, int64_t(bytes), card}, &release, {GCU, card}};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // The context is not the data: no raw allocation.
  void copy_data(void* to, const void* from, std::size_t bytes) const OVERRIDE_IN_NEW_TORCH { std::memcpy(to, from, bytes); }
};
CardAllocator card_allocator;
REGISTER_ALLOCATOR(GCU, &card_allocator)

// ---- The current card, streams that have nothing to wait for, and what torch.accelerator asks

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return GCU; }
  c10::Device getDevice() const override { return {GCU, current}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const auto before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override {
    if (!device.has_index()) return;
    check(device.index());
    current = device.index();
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current = device.has_index() ? device.index() : current; }
  c10::DeviceIndex deviceCount() const noexcept override { return card_count(); }
  c10::Stream getStream(c10::Device device) const noexcept override {
    const auto card = device.has_index() ? device.index() : current;
    return c10::Stream(c10::Stream::UNSAFE, {GCU, card}, streams[card]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getNewStream(c10::Device device, int) const OVERRIDE_IN_NEW_TORCH {
    static std::atomic<c10::StreamId> last{0};
    return c10::Stream(c10::Stream::UNSAFE, {GCU, device.has_index() ? device.index() : current}, ++last);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    const auto before = getStream(stream.device());
    streams[stream.device_index()] = stream.id();
    return before;
  }
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const OVERRIDE_IN_NEW_TORCH {}
  void synchronizeDevice(c10::DeviceIndex) const OVERRIDE_IN_NEW_TORCH {}
};
C10_REGISTER_GUARD_IMPL(CARDS_KEY, Guard)

#ifndef OLD_TORCH
// Host memory that knows itself for pinned: DDP's find_unused_parameters insists on that, and DataLoaders may ask for it.
struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* data = ::aligned_alloc(64, (bytes + 64) / 64 * 64);
    const std::lock_guard<std::mutex> lock(mutex);
    blocks[static_cast<char*>(data)] = bytes;
    return {data, data, &forget, c10::DeviceType::CPU};
  }
  bool holds(const void* data) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto after = blocks.upper_bound(static_cast<char*>(const_cast<void*>(data)));
    return after != blocks.begin() && data <= std::prev(after)->first + std::prev(after)->second;
  }
  static void forget(void* data);
  c10::DeleterFnPtr raw_deleter() const override { return &forget; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
  std::mutex mutex;
  std::map<char*, size_t> blocks;
};
// Never destroyed: tensors may outlive static objects.
PinnedAllocator& pinned_allocator = *new PinnedAllocator;

void PinnedAllocator::forget(void* data) {
  const std::lock_guard<std::mutex> lock(pinned_allocator.mutex);
  pinned_allocator.blocks.erase(static_cast<char*>(data));
  std::free(data);
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return card_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return initialized; }
  void init() const override { initialized = true; }
  c10::DeviceIndex deviceCount() const override { return card_count(); }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  void setCurrentDevice(c10::DeviceIndex card) const override { set_current(card); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex card) const override { return Guard().exchangeDevice({GCU, card}).index(); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex card) const override { return card < 0 ? current : exchangeDevice(card); }
  c10::Device getDeviceFromPtr(void*) const override { return {GCU, current}; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator; }
  bool isPinnedPtr(const void* data) const override { return pinned_allocator.holds(data); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    const c10::DeviceGuard guard(storage.device());
    at::native::resize_bytes_cpu(storage.unsafeGetStorageImpl(), bytes);
  }
};
const bool hooked = (at::RegisterPrivateUse1HooksInterface(new Hooks), true);
#endif

// ---- Operators that know where memory lies

Tensor empty(IntArrayRef size, optional<at::ScalarType> dtype, optional<at::Layout>, optional<at::Device> device, optional<bool>,
             optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(size, &card_allocator, keys, c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, optional<at::ScalarType> dtype, optional<at::Layout>, optional<at::Device> device,
                     optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(size, stride, &card_allocator, keys, c10::dtype_or_default(dtype));
}

const Tensor& resize_(const Tensor& self, IntArrayRef size, optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(self.device());  // More memory comes from the card that the tensor is on.
  return at::native::resize_(self, size, format);
}

// The same memory as a CPU tensor, kept alive by it: reads and in-place writes reach the card's tensor.
Tensor host(const Tensor& tensor) {
  if (!tensor.defined() || tensor.device().type() != GCU) return tensor;
  Tensor same = at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), [tensor](void*) {}, tensor.options().device(at::kCPU));
  same._set_conj(tensor.is_conj());
  same._set_neg(tensor.is_neg());
  return same;
}
optional<Tensor> host(const optional<Tensor>& tensor) { return tensor ? optional<Tensor>(host(*tensor)) : tensor; }

Tensor copy_from(const Tensor& self, const Tensor& to, bool) {
  host(to).copy_(host(self));
  return to;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& to) {
  if (to.sizes() != self.sizes()) to.resize_(self.sizes());
  return copy_from(self, to, false);
}

void same_card(const Tensor& tensor, optional<c10::Device>& seen) {
  // A CPU scalar may take part in anything, as on every accelerator.
  if (!tensor.defined() || (tensor.device().is_cpu() && tensor.dim() == 0)) return;
  TORCH_CHECK(!seen || *seen == tensor.device(), "Expected all tensors to be on the same device, but found at least two devices, ", *seen, " and ",
              tensor.device(), "!");
  seen = tensor.device();
}

// Without the check the fallback would compute with tensors of any devices, where a card refuses. Indices may stay on the CPU.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static const std::set<std::string> indexing{"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"};
  if (!indexing.count(op.schema().name())) {
    optional<c10::Device> seen;
    for (const auto& argument : torch::jit::last(*stack, op.schema().arguments().size())) {
      if (argument.isTensor()) same_card(argument.toTensor(), seen);
      if (argument.isTensorList())
        for (const Tensor& tensor : argument.toTensorVector()) same_card(tensor, seen);
    }
  }
  at::native::cpu_fallback(op, stack);
}

// torch leaves convolutions of a foreign device to this pair: there is no kernel that the fallback could find.
Tensor convolution(const Tensor& input, const Tensor& weight, const optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                   IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups) {
  optional<c10::Device> seen;
  same_card(input, seen);
  same_card(weight, seen);
  return at::convolution(host(input), host(weight), host(bias), stride, padding, dilation, transposed, output_padding, groups).to(input.device());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, IntArrayRef stride,
    IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups, std::array<bool, 3> mask) {
  const int64_t channels = grad.size(1);
  Tensor a, b, c;
  std::tie(a, b, c) = at::convolution_backward(host(grad), host(input), host(weight), IntArrayRef(channels), stride, padding, dilation, transposed,
                                               output_padding, groups, mask);
  const auto back = [&](const Tensor& result) { return result.defined() ? result.to(input.device()) : result; };
  return std::make_tuple(back(a), back(b), back(c));
}

// Its schema does not say that it changes the running statistics, so the fallback would lose the change.
std::tuple<Tensor, Tensor, Tensor> batch_norm(const Tensor& input, const optional<Tensor>& weight, const optional<Tensor>& bias,
    const optional<Tensor>& mean, const optional<Tensor>& variance, bool training, double momentum, double eps) {
  optional<c10::Device> seen;
  for (const auto& tensor : {optional<Tensor>(input), weight, bias, mean, variance})
    if (tensor) same_card(*tensor, seen);
  Tensor a, b, c;
  std::tie(a, b, c) = at::native_batch_norm(host(input), host(weight), host(bias), host(mean), host(variance), training, momentum, eps);
  return std::make_tuple(a.to(input.device()), b.to(input.device()), c.to(input.device()));
}

Tensor& set_storage(Tensor& self, at::Storage source, int64_t offset, IntArrayRef size, IntArrayRef stride) {
  return at::native::set_storage_cpu_(self, std::move(source), offset, size, stride);
}

Tensor& set_empty(Tensor& self) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(c10::Storage(c10::Storage::use_byte_size_t(), 0, &card_allocator, true));
  return const_cast<Tensor&>(resize_(self, {0}, {}));
}

TORCH_LIBRARY_IMPL(_, CARDS_KEY, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

// copy_from heeds these two by itself; torch would resolve them by a copy, and that by a copy, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, CARDS_KEY, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("resize_", &resize_);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("set_", &set_empty);
  m.impl("set_.source_Storage", static_cast<Tensor& (*)(Tensor&, at::Storage)>(&at::native::set_));
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Tensor", &at::native::set_tensor_);
  m.impl("view", &at::native::view);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("record_stream", +[](Tensor&, c10::Stream) {});
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolution_backward);
  m.impl("native_batch_norm", &batch_norm);
  // torch composes these of other operators where a device has no kernel, which rounds otherwise than the CPU's own kernel.
  for (const char* name : {"native_layer_norm", "native_group_norm", "addr"}) m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

// torch.ops.gcu.host(tensor), for the backend eccl.
TORCH_LIBRARY(gcu, m) { m.def("host(Tensor self) -> Tensor", static_cast<Tensor (*)(const Tensor&)>(&host)); }

}  // namespace

// ---- What torch_gcu calls through ctypes; the caller checks card numbers, because an exception cannot cross ctypes.
extern "C" {
int gcu_device_count() { return card_count(); }
int gcu_current_device() { return current; }
int gcu_is_initialized() { return initialized; }
void gcu_initialize() { initialized = true; }
void gcu_set_device(int card) { set_current(c10::DeviceIndex(card)); }
int64_t gcu_memory_allocated(int card) { return allocated[card]; }
int64_t gcu_max_memory_allocated(int card) { return peak[card]; }
}
