// Names, sentences and measurements side by side.
#include "promises/table.h"

namespace gpusched::bench {
namespace {

constexpr Promise kPromises[] = {
    {"equal_time", "round_robin gives sessions equal device time, whatever their launches take",
     MeasureEqualTime},
    {"shares", "weighted_share gives every session its share of every second, from the first",
     MeasureShares},
    {"caps_survive", "max and strict hold under every policy and across swaps", MeasureCapsSurvive},
    {"preemption", "a request waits for no more than the preemption bound", MeasurePreemption},
    {"starvation", "the lowest session runs at least once per declared wait", MeasureStarvation},
    {"hot_swap", "swaps under full load lose, double, reorder and delay nothing", MeasureHotSwap},
    {"demo", "requests keep their target beside an endless update that uses the rest", MeasureDemo},
    {"round_trip_grpc", "a job's round trip costs little more than a bare gRPC echo",
     MeasureRoundTripGrpc},
    {"decision_cost", "a decision costs at most half a microsecond and no allocation",
     MeasureDecisionCost},
    {"client_killed", "a client killed at any point is gone at once and disturbs nobody",
     MeasureClientKilled},
    {"eight_devices", "a session runs, counts and reports on the device it asked for",
     MeasureEightDevices},
    {"real_trace", "recorded requests meet their deadlines as if they were alone",
     MeasureRealTrace},
    {"real_kernel", "real kernels compute what a plain CPU computation gives", MeasureRealKernel},
    {"opencl_demo", "the main job keeps its promise with kernels that compute", MeasureOpenClDemo},
    {"game", "60 frames a second keep 20 ms beside endless analytics", MeasureGame},
    {"team", "trainings get the time and the memory that each asked for", MeasureTeam},
    {"cut_equals_whole", "a launch cut at random gives what the whole gives, byte by byte",
     MeasureCutEqualsWhole},
    {"device_contract", "every device keeps one contract", MeasureDeviceContract},
    {"high_beside_low", "a short kernel hardly notices endless long ones on the same processor",
     MeasureHighBesideLow},
    {"cutting_cost", "a long kernel cut into parts takes hardly longer", MeasureCuttingCost},
    {"chain", "a chain of short kernels runs at the driver's own rate", MeasureChain},
    {"install", "an installed prefix is all that a program of one's own needs", MeasureInstall},
    {"share_error", "shares hold for every mix of sessions, drawn, known or made to be bad",
     MeasureShareError},
    {"priorities", "no inversion beyond bound and rescue; rescues keep to their share",
     MeasurePriorities},
    {"checker_has_teeth", "every broken core and policy is caught", MeasureCheckerHasTeeth},
    {"determinism", "a seed is one history, whoever compiled the scheduler and however",
     MeasureDeterminism},
    {"sla_mix", "frames, recommendations and analytics keep their targets beside an update",
     MeasureSlaMix},
    {"tail", "trainings add no more than the preemption bound to an inference's tail", MeasureTail},
    {"published_shapes", "shares and preemption have the shapes that others published",
     MeasurePublishedShapes},
    {"multi_tenant", "the checker stays silent over recorded mixes of tenants", MeasureMultiTenant},
    {"simulator_speed", "virtual time passes at a million commands a second",
     MeasureSimulatorSpeed},
    {"ptx_assembles", "rewritten kernels assemble as before, with hardly a register more",
     MeasurePtxAssembles},
    {"ptx_cut_equals_whole", "a kernel cut at random gives what the whole gives, byte by byte",
     MeasurePtxCutEqualsWhole},
    {"ptx_unsafe_refused", "a kernel that must not be cut is refused with its reason",
     MeasurePtxUnsafeRefused},
    {"ptx_hostile", "broken PTX, fat binaries and cubins break nothing", MeasurePtxHostile},
    {"ptx_speed", "rewriting costs little more than reading", MeasurePtxSpeed},
    {"cuda_faults", "whichever CUDA call fails, each order is answered once and the cause named",
     MeasureCudaFaults},
    {"cuda_demo", "the main job runs through the CUDA device, without a GPU", MeasureCudaDemo},
    {"cuda_starts_anywhere", "the daemon starts without a driver and says what it met",
     MeasureCudaStartsAnywhere},
};

}  // namespace

std::span<const Promise> AllPromises() { return kPromises; }

}  // namespace gpusched::bench
