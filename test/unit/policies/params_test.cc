// Parameters read from text: ranges, defaults, and every mistake at once.
#include "gpusched/policy/params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusched {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr ParameterSpec kTable[] = {
    ParameterSpec::OfDuration("slice", std::chrono::microseconds(50), std::chrono::seconds(1),
                              std::chrono::milliseconds(1), "how long"),
    ParameterSpec::OfFraction("share", 0, kWholeDevice, kWholeDevice / 20, "how much"),
    ParameterSpec::OfInteger("depth", -1, 64, 8, "how many"),
};

Parameters Read(const ParameterText& given) {
  std::vector<FieldError> errors;
  Parameters parameters = Parameters::Parse(kTable, given, errors);
  EXPECT_THAT(errors, IsEmpty());
  return parameters;
}
std::vector<FieldError> ErrorsOf(const ParameterText& given) {
  std::vector<FieldError> errors;
  (void)Parameters::Parse(kTable, given, errors);
  return errors;
}

TEST(ParametersTest, WhatIsNotGivenHasItsDefault) {
  const Parameters parameters = Read({});
  EXPECT_EQ(parameters.duration("slice"), std::chrono::milliseconds(1));
  EXPECT_EQ(parameters.fraction("share"), 50'000'000);
  EXPECT_EQ(parameters.integer("depth"), 8);
  EXPECT_EQ(parameters.Canonical(), "slice=1ms,share=5%,depth=8");
  EXPECT_THAT(parameters.Text(),
              UnorderedElementsAre(Pair("slice", "1ms"), Pair("share", "5%"), Pair("depth", "8")));
}

TEST(ParametersTest, ValuesAreReadExactly) {
  const Parameters parameters = Read({{"slice", "1.5ms"}, {"share", "12.5%"}, {"depth", "-1"}});
  EXPECT_EQ(parameters.duration("slice"), std::chrono::microseconds(1'500));
  EXPECT_EQ(parameters.fraction("share"), 125'000'000);
  EXPECT_EQ(parameters.integer("depth"), -1);
  EXPECT_EQ(Read({{"share", "0.05"}}).fraction("share"), 50'000'000);
  EXPECT_EQ(Read({{"share", "100%"}}).fraction("share"), kWholeDevice);
}

TEST(ParametersTest, TheCanonicalTextReadsBackAsTheSameValues) {
  for (const char* slice : {"1ms", "1234567ns", "50us", "0.9999s"}) {
    for (const char* share : {"0%", "33.3333333%", "0.000000001", "1"}) {
      const Parameters once = Read({{"slice", slice}, {"share", share}});
      std::vector<FieldError> errors;
      const Parameters twice = Read(SplitParameters(once.Canonical(), errors));
      EXPECT_THAT(errors, IsEmpty());
      EXPECT_EQ(twice.duration("slice"), once.duration("slice")) << slice;
      EXPECT_EQ(twice.fraction("share"), once.fraction("share")) << share;
    }
  }
}

TEST(ParametersTest, EverythingThatIsWrongIsSaidAtOnce) {
  EXPECT_THAT(ErrorsOf({{"slice", "2h"}, {"share", "lots"}, {"depth", "3.5"}, {"slize", "1ms"}}),
              UnorderedElementsAre(
                  ::testing::AllOf(Field(&FieldError::field, "slice"),
                                   Field(&FieldError::message, HasSubstr("50us to 1s"))),
                  ::testing::AllOf(Field(&FieldError::field, "share"),
                                   Field(&FieldError::message, HasSubstr("5% or 0.05"))),
                  ::testing::AllOf(Field(&FieldError::field, "depth"),
                                   Field(&FieldError::message, HasSubstr("whole number"))),
                  ::testing::AllOf(Field(&FieldError::field, "slize"),
                                   Field(&FieldError::message, HasSubstr("slice, share, depth")))));
}

TEST(ParametersTest, HalfNumbersAreRefused) {
  for (const char* text : {"", "%", ".", "5%%", "-5%", "5 %", "1e-3", "1.2.3", "99999999999%"}) {
    EXPECT_EQ(ErrorsOf({{"share", text}}).size(), 1u) << "'" << text << "'";
  }
  for (const char* text : {"", "ms", "1", "-1ms", "1ms ", "99999999999999h"}) {
    EXPECT_EQ(ErrorsOf({{"slice", text}}).size(), 1u) << "'" << text << "'";
  }
  for (const char* text : {"", "9223372036854775808", "1x", "65"}) {
    EXPECT_EQ(ErrorsOf({{"depth", text}}).size(), 1u) << "'" << text << "'";
  }
}

TEST(SplitParametersTest, PairsAreSplitAtCommas) {
  std::vector<FieldError> errors;
  EXPECT_THAT(SplitParameters("a=1,b=2=3", errors),
              UnorderedElementsAre(Pair("a", "1"), Pair("b", "2=3")));
  EXPECT_THAT(SplitParameters("", errors), IsEmpty());
  EXPECT_THAT(errors, IsEmpty());
}

TEST(SplitParametersTest, MalformedAndRepeatedPairsAreNamed) {
  std::vector<FieldError> errors;
  (void)SplitParameters("a=1,nonsense,a=2,=3", errors);
  EXPECT_THAT(errors,
              ElementsAre(Field(&FieldError::field, "nonsense"), Field(&FieldError::field, "a"),
                          Field(&FieldError::message, HasSubstr("name=value"))));
}

}  // namespace
}  // namespace gpusched
