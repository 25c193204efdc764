// The one table of promises: every promise of the README, in its order.
#pragma once

#include <span>

#include "promises/promise.h"

namespace gpusched::bench {

std::span<const Promise> AllPromises();

// One for each row; the file of the same name holds it.
Result<Measurement> MeasureEqualTime(Length);
Result<Measurement> MeasureShares(Length);
Result<Measurement> MeasureCapsSurvive(Length);
Result<Measurement> MeasureChain(Length);
Result<Measurement> MeasureCutEqualsWhole(Length);
Result<Measurement> MeasureCuttingCost(Length);
Result<Measurement> MeasureDeviceContract(Length);
Result<Measurement> MeasureForeignKernels(Length);
Result<Measurement> MeasureHighBesideLow(Length);
Result<Measurement> MeasurePreemption(Length);
Result<Measurement> MeasureStarvation(Length);
Result<Measurement> MeasureHotSwap(Length);
Result<Measurement> MeasureDemo(Length);
Result<Measurement> MeasureRoundTripGrpc(Length);
Result<Measurement> MeasureDecisionCost(Length);
Result<Measurement> MeasureClientKilled(Length);
Result<Measurement> MeasureEightDevices(Length);
Result<Measurement> MeasureRealTrace(Length);
Result<Measurement> MeasureRealKernel(Length);
Result<Measurement> MeasureOpenClDemo(Length);
Result<Measurement> MeasureGame(Length);
Result<Measurement> MeasureTeam(Length);
Result<Measurement> MeasureInstall(Length);
Result<Measurement> MeasureCudaDemo(Length);
Result<Measurement> MeasureCudaFaults(Length);
Result<Measurement> MeasureCudaStartsAnywhere(Length);
Result<Measurement> MeasureShareError(Length);
Result<Measurement> MeasurePriorities(Length);
Result<Measurement> MeasureCheckerHasTeeth(Length);
// In virtual time.
Result<Measurement> MeasureDeterminism(Length);
Result<Measurement> MeasureSlaMix(Length);
Result<Measurement> MeasureTail(Length);
Result<Measurement> MeasurePublishedShapes(Length);
Result<Measurement> MeasureMultiTenant(Length);
Result<Measurement> MeasureSimulatorSpeed(Length);
Result<Measurement> MeasurePtxAssembles(Length);
Result<Measurement> MeasurePtxCutEqualsWhole(Length);
Result<Measurement> MeasurePtxUnsafeRefused(Length);
Result<Measurement> MeasurePtxHostile(Length);
Result<Measurement> MeasurePtxSpeed(Length);

}  // namespace gpusched::bench
