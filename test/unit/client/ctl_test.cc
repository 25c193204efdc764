// What the operator's tool says: parts of the device, reasons, JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "ctl/admin_client.h"
#include "ctl/json.h"
#include "ctl/table.h"
#include "ctl/words.h"

namespace gpusched::ctl {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

admin::Policy Weighted() {
  admin::Policy policy;
  policy.kind = "weighted_share";
  policy.honoured = {"weight", "min", "max", "strict"};
  return policy;
}

admin::Session Open(std::uint64_t id, admin::Share share) {
  admin::Session session;
  session.id = id;
  session.name = "s" + std::to_string(id);
  session.device = "virtual-0";
  session.share = share;
  return session;
}

// Two snapshots a second apart in which the session asked and got so much.
std::string WhyOf(admin::Session session, admin::Duration asked, admin::Duration got,
                  const admin::Policy& policy = Weighted()) {
  admin::Snapshot before{.time = 1s, .policy = policy, .devices = {}, .sessions = {session}};
  before.sessions.push_back(Open(99, {.weight = 30}));
  admin::Snapshot after = before;
  after.time = 2s;
  after.sessions[0].asked += asked;
  after.sessions[0].charged += got;
  return Why(Compare(before, after).at(0), policy);
}

TEST(Declared, WeightsShareTheDevice) {
  const auto parts = DeclaredParts({Open(1, {.weight = 70}), Open(2, {.weight = 30})}, Weighted());
  EXPECT_THAT(parts.at(1), DoubleNear(0.7, 1e-6));
  EXPECT_THAT(parts.at(2), DoubleNear(0.3, 1e-6));
}

TEST(Declared, MinAndMaxMoveTheLevel) {
  // 1 is held at 0.5; the other half is shared 2 : 1.
  const auto parts = DeclaredParts(
      {Open(1, {.weight = 1'000, .max = 0.5}), Open(2, {.weight = 20}), Open(3, {.weight = 10})},
      Weighted());
  EXPECT_THAT(parts.at(1), DoubleNear(0.5, 1e-6));
  EXPECT_THAT(parts.at(2), DoubleNear(1.0 / 3, 1e-6));
  const auto lifted =
      DeclaredParts({Open(1, {.weight = 1, .min = 0.4}), Open(2, {.weight = 99})}, Weighted());
  EXPECT_THAT(lifted.at(1), DoubleNear(0.4, 1e-6));
  EXPECT_THAT(lifted.at(2), DoubleNear(0.6, 1e-6));
}

TEST(Declared, WeightsThatThePolicyIgnoresDoNotCount) {
  admin::Policy policy;
  policy.kind = "round_robin";
  policy.honoured = {"max", "strict"};
  const auto parts = DeclaredParts({Open(1, {.weight = 70}), Open(2, {.weight = 30})}, policy);
  EXPECT_THAT(parts.at(1), DoubleNear(0.5, 1e-6));
}

TEST(Why, NothingToSayWhereItGotWhatItDeclared) {
  EXPECT_EQ(WhyOf(Open(1, {.weight = 70}), 700ms, 699ms), "");
}

TEST(Why, TimeWithoutWorkIsTold) {
  EXPECT_EQ(WhyOf(Open(1, {.weight = 70}), 420ms, 420ms),
            "did not fill its share: no work 40 % of the time");
}

TEST(Why, UnusedTimeIsLent) {
  EXPECT_EQ(WhyOf(Open(1, {.weight = 70}), 1'000ms, 1'000ms),
            "lent 30.0 % that others left unused");
}

TEST(Why, StatesComeFirst) {
  admin::Session paused = Open(1, {.weight = 70});
  paused.paused = true;
  EXPECT_EQ(WhyOf(paused, 0ms, 0ms), "paused by the operator");
  admin::Session capped = Open(1, {.weight = 70, .max = 0.7});
  capped.at_cap = true;
  EXPECT_EQ(WhyOf(capped, 700ms, 690ms), "at its max");
  admin::Session beside = Open(1, {.weight = 70});
  beside.at_cap = true;
  EXPECT_EQ(WhyOf(beside, 700ms, 690ms), "strict sessions keep the rest free");
}

TEST(Why, DebtsAreTold) {
  admin::Session owed = Open(1, {.weight = 70});
  owed.lag = 20ms;
  EXPECT_EQ(WhyOf(owed, 700ms, 680ms), "is owed 20ms");
  admin::Session ahead = Open(1, {.weight = 70});
  ahead.lag = -20ms;
  EXPECT_EQ(WhyOf(ahead, 700ms, 720ms), "ahead, pays back next");
}

TEST(Why, PolicyWithoutSharesIsNamed) {
  admin::Session session = Open(1, {.weight = 70});
  session.shares_promised = false;
  admin::Policy policy;
  policy.kind = "preemptive_priority";
  EXPECT_EQ(WhyOf(session, 0ms, 900ms, policy), "preemptive_priority promises no shares");
}

TEST(ShareWords, IgnoredFieldsStandInBrackets) {
  EXPECT_EQ(ShareWords({.weight = 70, .max = 0.5, .priority = 10, .latency_target = 20ms},
                       Weighted().honoured),
            "weight 70, max 50.0 %, (priority 10), (target 20ms)");
}

TEST(ParsePolicy, WhatIsWrongIsNamed) {
  const auto parse = [](const std::vector<std::string>& words) {
    std::string kind;
    admin::Parameters parameters;
    return ParsePolicy(words, &kind, &parameters);
  };
  EXPECT_TRUE(parse({"weighted_share", "window=200ms", "slice=1ms"}).ok());
  EXPECT_TRUE(parse({"window=a=b"}).ok());
  EXPECT_THAT(parse({"weighted_share", "=3"}).message(), HasSubstr("'=3' names no parameter"));
  EXPECT_THAT(parse({"window=200ms", "window=300ms"}).message(),
              HasSubstr("'window' is given twice"));
  EXPECT_THAT(parse({"round_robin", "weighted_share"}).message(), HasSubstr("'weighted_share'"));
  EXPECT_EQ(parse({"a\xFF=1"}).code(), StatusCode::kInvalidArgument);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{""}, {"weighted_share", ""}, {"weighted_share,"}, {","}}) {
    EXPECT_THAT(parse(words).message(), HasSubstr("an empty word is no policy: write KIND"));
  }
}

TEST(ParsePolicy, CommasSeparateAsSpacesDo) {
  std::string kind;
  admin::Parameters parameters;
  EXPECT_TRUE(ParsePolicy({"weighted_share,window=200ms", "slice=1ms"}, &kind, &parameters).ok());
  EXPECT_EQ(kind, "weighted_share");
  EXPECT_EQ(parameters, (admin::Parameters{{"slice", "1ms"}, {"window", "200ms"}}));
}

TEST(FailureWords, AFaultIsToldOnce) {
  const Status status(StatusCode::kInvalidArgument, "BAD", "line 3, column 1: foo: is no key");
  EXPECT_EQ(FailureWords(status, {{"foo", "is no key", 3, 1}}),
            "INVALID_ARGUMENT (BAD): line 3, column 1: foo: is no key");
  // Another key with the same fault, another place of the same key.
  EXPECT_EQ(FailureWords(status, {{"bar", "is no key", 4, 1}}),
            "INVALID_ARGUMENT (BAD): line 3, column 1: foo: is no key\n"
            "  bar (line 4, column 1): is no key");
  EXPECT_THAT(FailureWords(status, {{"foo", "is no key", 0, 0}}), testing::Not(HasSubstr("\n")));
}

// What gpuschedctl prints, and its exit status.
std::string Said(const std::string& words) {
  FILE* const out = popen((GPUSCHEDCTL " " + words + " 2>&1").c_str(), "r");
  std::string text;
  char line[1'024];
  while (out != nullptr && std::fgets(line, sizeof line, out) != nullptr) text += line;
  const int status = out == nullptr ? -1 : pclose(out);
  return text + "exit " + std::to_string(WEXITSTATUS(status));
}

TEST(CommandLine, WhatIsEmptyStandsForNothingElse) {
  const auto refused = [](const char* why) {
    return testing::AllOf(HasSubstr(why), testing::EndsWith("exit 2"));
  };
  EXPECT_THAT(Said("policy set ''"), refused("an empty word is no policy: write KIND"));
  EXPECT_THAT(Said("policy validate ''"), refused("an empty word is no policy: write KIND"));
  EXPECT_THAT(Said("policy set round_robin --etag ''"), refused("policy get shows it"));
  EXPECT_THAT(Said("kill ''"), refused("gpuschedctl sessions shows ids and names"));
}

TEST(CommandLine, ANumberOutOfItsRangeIsRefusedWithTheRange) {
  for (const char* words : {"slices --count -1", "slices --count inf", "slices --count 1e30",
                            "policy rollback -1", "policy rollback nan"}) {
    EXPECT_THAT(Said(words), testing::AllOf(HasSubstr("not in range 1 to 1000000000000"),
                                            testing::EndsWith("exit 2")));
  }
  for (const char* words :
       {"top --period 0", "top --period inf", "top --period 1000000h", "top --period -1s",
        "policy set round_robin --for inf", "policy set round_robin --for 1000000h"}) {
    EXPECT_THAT(Said(words),
                testing::AllOf(HasSubstr("is no time from"), testing::EndsWith("exit 2")));
  }
}

TEST(CommandLine, AnUnknownCommandIsNamed) {
  const auto ends_wrong = testing::EndsWith("exit 2");
  EXPECT_THAT(Said("bogus"), testing::AllOf(HasSubstr("'bogus' is no command"), ends_wrong));
  EXPECT_THAT(Said("policy bogus"), testing::AllOf(HasSubstr("'bogus' is no command"), ends_wrong));
  EXPECT_THAT(Said("policy"), testing::AllOf(HasSubstr("subcommand is required"), ends_wrong));
  EXPECT_THAT(Said("kill $(printf 'a\\377')"), testing::AllOf(HasSubstr("not UTF-8"), ends_wrong));
  EXPECT_THAT(Said("--help"), testing::EndsWith("exit 0"));
}

TEST(Json, EscapesAndKeepsNumbersExact) {
  admin::Session session = Open(18'446'744'073'709'551'615u, {});
  session.name = "a \"b\"\n\\";
  session.shares_promised = false;
  const std::string json = Json(session);
  EXPECT_THAT(json, HasSubstr(R"("id": 18446744073709551615)"));
  EXPECT_THAT(json, HasSubstr(R"("name": "a \"b\"\u000a\\")"));
  EXPECT_THAT(json, HasSubstr(R"("asked_ns": null)"));
  EXPECT_EQ(Json(std::vector<admin::Session>{}), "[]");
}

TEST(Json, ErrorsCarryTheirFields) {
  const Status status(StatusCode::kInvalidArgument, "BAD_PARAMETER", "two things are wrong");
  EXPECT_EQ(Json(status, {{"window", "too long", 3, 9}}),
            R"({"error": {"code": "INVALID_ARGUMENT", "reason": "BAD_PARAMETER", )"
            R"("message": "two things are wrong", "fields": [{"field": "window", )"
            R"("message": "too long", "line": 3, "column": 9}]}})");
}

TEST(Table, ColumnsAreAsWideAsTheirWidest) {
  Table table({">ID", "NAME"});
  table.Add({"7", "a"});
  table.Add({"123", "bc"});
  EXPECT_EQ(table.Text(), " ID  NAME\n  7  a\n123  bc\n");
}

}  // namespace
}  // namespace gpusched::ctl
