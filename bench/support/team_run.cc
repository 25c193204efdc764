// Each member is a connection, a session, a trainer and a closed loop of a few steps.
#include "support/team_run.h"

#include <chrono>
#include <cstdio>
#include <utility>

#include "team_training/trainer.h"

namespace gpusched::bench {
namespace {

using std::chrono::milliseconds;

// Long launches: that they are shared out evenly is the daemon's doing.
constexpr samples::Size kStep{.alone = milliseconds(20), .launch = milliseconds(10)};
// Enough that no stall of the host leaves a member without work.
constexpr int kOutstanding = 3;
static_assert(kOutstanding <= static_cast<int>(team::Trainer::kMostOutstanding));

double Ratio(Duration part, Duration whole) {
  return static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

}  // namespace

const std::array<TeamMember, kTeamSize>& TheTeam() {
  static const std::array<TeamMember, kTeamSize> team{
      {{"paper", 70, 48_MiB}, {"thesis", 20, 8_MiB}, {"course", 10, 4_MiB}}};
  return team;
}

struct TeamRun::Member {
  Session session;
  std::unique_ptr<team::Trainer> trainer = nullptr;
  std::unique_ptr<Endless> load = nullptr;  // goes before what it runs in
};

struct TeamRun::Accounts {
  SteadyTime time{};
  std::array<admin::Session, kTeamSize> members;
};

TeamRun::TeamRun() = default;
TeamRun::~TeamRun() {
  // All at once stop submitting before the first is closed.
  for (auto& member : members_) {
    if (member) member->load.reset();
  }
}

Result<std::unique_ptr<TeamRun>> TeamRun::Start(const std::string& endpoint) {
  std::unique_ptr<TeamRun> run(new TeamRun);
  for (std::size_t i = 0; i < kTeamSize; ++i) {
    const TeamMember& asks = TheTeam()[i];
    Result<Client> client = Client::Connect({.endpoint = endpoint});
    if (!client.ok()) return client.status();
    Result<Session> session = client->OpenSession({.name = asks.name,
                                                   .device = "0",
                                                   .share = {.weight = asks.weight},
                                                   .memory = asks.memory});
    if (!session.ok()) return session.status();
    run->members_[i].reset(new Member{.session = *std::move(session)});
    auto trainer =
        team::Trainer::Open(run->members_[i]->session, static_cast<std::uint32_t>(i), kStep);
    if (!trainer.ok()) return trainer.status();
    run->members_[i]->trainer = *std::move(trainer);
  }
  for (auto& member : run->members_) {
    const Result<bool> right = member->trainer->NextStepIsRight();
    if (!right.ok()) return right.status();
    if (!*right) {
      return Status(StatusCode::kInternal, "DATA_DIFFERS",
                    "a trainer's first step differs from the same step computed on the CPU");
    }
    member->load = std::make_unique<Endless>(
        kOutstanding, [trainer = member->trainer.get()] { return trainer->Submit(); });
  }
  return run;
}

Result<TeamRun::Accounts> TeamRun::Read(admin::AdminClient& admin) const {
  // A snapshot carries the time at which the accounts were read.
  Result<std::unique_ptr<admin::Feed<admin::Snapshot>>> feed = admin.Watch(std::chrono::seconds(1));
  if (!feed.ok()) return feed.status();
  const Result<admin::Snapshot> snapshot = (*feed)->Next();
  (*feed)->Stop();
  if (!snapshot.ok()) return snapshot.status();
  Accounts accounts{.time = SteadyTime(snapshot->time), .members = {}};
  for (std::size_t i = 0; i < kTeamSize; ++i) {
    if (Status status = members_[i]->load->status(); !status.ok()) return status;
    for (const admin::Session& session : snapshot->sessions) {
      if (session.id == members_[i]->session.id()) accounts.members[i] = session;
    }
    if (accounts.members[i].id == 0) {
      return Status(StatusCode::kNotFound, reason::kUnknownSession,
                    "the daemon no longer lists a session of this run; its log says why");
    }
  }
  return accounts;
}

Status TeamRun::BeginWindow(admin::AdminClient& admin) {
  Result<Accounts> accounts = Read(admin);
  if (!accounts.ok()) return accounts.status();
  begin_ = std::make_unique<Accounts>(*std::move(accounts));
  return Status::Ok();
}

Result<std::array<MemberFigures, kTeamSize>> TeamRun::EndWindow(admin::AdminClient& admin) {
  const Result<Accounts> end = Read(admin);
  if (!end.ok()) return end.status();
  const Duration window = end->time - begin_->time;
  std::array<MemberFigures, kTeamSize> figures;
  for (std::size_t i = 0; i < kTeamSize; ++i) {
    const admin::Session &before = begin_->members[i], &after = end->members[i];
    figures[i].name = TheTeam()[i].name;
    figures[i].steps = members_[i]->load->DoneBetween(begin_->time, end->time).size();
    if (after.shares_promised) figures[i].asked = Ratio(after.asked - before.asked, window);
    figures[i].got = Ratio(after.charged - before.charged, window);
    figures[i].slices = after.slices - before.slices;
  }
  return figures;
}

std::size_t TeamRun::BytesTooManyRefused() {
  std::size_t refused = 0;
  for (auto& member : members_) {
    if (member->trainer->RefusesOneByteTooMany()) ++refused;
  }
  return refused;
}

Result<std::array<Work::Checked, kTeamSize>> TeamRun::Finish() {
  for (auto& member : members_) {
    if (Status status = member->load->status(); !status.ok()) return status;
    member->load.reset();
  }
  std::array<Work::Checked, kTeamSize> results;
  for (std::size_t i = 0; i < kTeamSize; ++i) {
    team::Trainer& trainer = *members_[i]->trainer;
    const double first = trainer.first_loss(), last = trainer.last_loss();
    const Result<bool> right = trainer.NextStepIsRight();
    if (!right.ok()) return right.status();
    char losses[64];
    std::snprintf(losses, sizeof losses, "loss %.4f, at the end %.4f", first, last);
    // Its first step was compared when it started.
    results[i] = {.compared = 2, .wrong = *right && last < first ? 0u : 1u, .remark = losses};
  }
  return results;
}

}  // namespace gpusched::bench
