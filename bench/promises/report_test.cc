// What the report makes of figures, by hand: verdicts, lines and JSON.
#include "promises/report.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "promises/windows.h"

namespace gpusched::bench {
namespace {

constexpr Promise kPromise = {"speed", "it is \"fast\"", nullptr};

Told Of(std::vector<Figure> figures) {
  return {.promise = &kPromise,
          .measured = Measurement{.figures = std::move(figures), .not_run = {}, .remark = {}},
          .seconds = 1.5};
}

TEST(Report, APromiseHoldsOnlyIfAllItsFiguresDo) {
  EXPECT_EQ(Of({AtMost("a", 1, "ms", 1), AtLeast("b", 90, "%", 90)}).verdict(), Verdict::kHolds);
  EXPECT_EQ(Of({AtMost("a", 1, "ms", 1), AtLeast("b", 89.9, "%", 90)}).verdict(),
            Verdict::kFallsShort);
}

TEST(Report, NothingMeasuredIsNeverAPromiseKept) {
  EXPECT_EQ(Of({}).verdict(), Verdict::kFallsShort);
  EXPECT_EQ(Of({AtMost("a", std::nan(""), "ms", 1)}).verdict(), Verdict::kFallsShort);
  const Told broken = {.promise = &kPromise,
                       .measured = Status(StatusCode::kInternal, "BROKEN", "no daemon"),
                       .seconds = 0};
  EXPECT_EQ(broken.verdict(), Verdict::kFallsShort);
}

TEST(Report, WhatTheMachineLacksIsNamed) {
  Told told = Of({});
  told.measured->not_run = "no GPU";
  std::ostringstream out;
  TellPeople(out, told);
  EXPECT_EQ(told.verdict(), Verdict::kNotRun);
  EXPECT_NE(out.str().find("not run (no GPU)"), std::string::npos);
}

TEST(Report, ALineHasNameFigureUnitBarVerdictAndSeconds) {
  std::ostringstream out;
  TellPeople(out, Of({AtMost("p99", 12.25, "ms", 20)}));
  std::istringstream words(out.str());
  std::vector<std::string> line;
  for (std::string word; words >> word;) line.push_back(word);
  EXPECT_EQ(line, (std::vector<std::string>{"speed", "p99", "12.25", "ms", "<=", "20", "ms",
                                            "holds", "1.5", "s"}));
}

TEST(Report, JsonCanBeReadBack) {
  std::ostringstream out;
  TellMachines(out, {Of({AtMost("p99", 12.25, "ms", 20)})}, Length::kShort);
  const YAML::Node root = YAML::Load(out.str());
  const YAML::Node promise = root["promises"][0];
  EXPECT_EQ(promise["promise"].as<std::string>(), "it is \"fast\"");
  EXPECT_EQ(promise["verdict"].as<std::string>(), "holds");
  EXPECT_EQ(promise["figures"][0]["value"].as<double>(), 12.25);
  EXPECT_EQ(promise["figures"][0]["bar"].as<double>(), 20);
  EXPECT_GT(root["machine"]["cores"].as<int>(), 0);
  EXPECT_FALSE(root["commit"].as<std::string>().empty());
}

TEST(Windows, BeginWhereSlicesBeginAndEndInsideTheRun) {
  Ledger ledger;
  for (const int start : {10, 20, 30, 40}) {
    ledger.Add({.session = 1,
                .started = nanoseconds(start),
                .ended = nanoseconds(start + 10),
                .charged = nanoseconds(10)});
  }
  std::vector<std::int64_t> begins;
  ForEachWindow(ledger, nanoseconds(15), nanoseconds(50), nanoseconds(20),
                [&](nanoseconds begin, nanoseconds end) {
                  begins.push_back(begin.count());
                  EXPECT_EQ(end - begin, nanoseconds(20));
                });
  EXPECT_EQ(begins, (std::vector<std::int64_t>{15, 20, 30}));
}

}  // namespace
}  // namespace gpusched::bench
