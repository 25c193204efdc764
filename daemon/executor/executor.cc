// One device's turns; what control asks of it is in executor_control.cc.
#include <utility>  // Boost 1.74's asio forgets it under C++20.

#include "executor/executor.h"

#include <algorithm>

#include "executor/admission.h"
#include "executor/clock.h"
#include "executor/commands.h"
#include "gpusched/reasons.h"
#include "telemetry/log.h"

namespace gpusched::executor {
namespace {

// Rounds before streams are read on and the timer is set even though more is there to do: reads are
// withheld meanwhile, so this bounds how long one session's endless tiny commands hold up the
// others.
constexpr int kRoundsPerTurn = 16;

core::DeviceTraits TraitsOf(const device::DeviceInfo& info, Duration preemption_bound) {
  return {.priority_classes = info.priority_classes,
          .can_interrupt = info.preemption != device::PreemptionLevel::kBetweenCommands,
          .shortest_useful_chunk = info.shortest_useful_chunk,
          .probe_units = info.probe_units,
          .preemption_bound = preemption_bound};
}

// Names come from clients and go to logs and tables: one line, printable.
std::string Printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

std::string Named(const Session& session) {
  return "session " + std::to_string(session.id().serial) + " '" + session.name() + "'";
}

}  // namespace

Executor::Executor(Options options, std::unique_ptr<Mailbox> mailbox,
                   std::unique_ptr<device::Device> device, core::PolicySpec spec,
                   std::unique_ptr<Policy> policy, boost::asio::io_context& events)
    : options_(std::move(options)),
      mailbox_(std::move(mailbox)),
      device_(std::move(device)),
      promises_shares_(policy->share_rule() != ShareRule::kNone),
      scheduler_(options_.limits, TraitsOf(device_->info(), options_.preemption_bound), spec,
                 std::move(policy)),
      desk_(scheduler_, *device_),
      preemption_bound_(options_.preemption_bound),
      generation_(spec.generation),
      timer_(events, [this] { Bring(TimerFired{}); }) {
  desk_.limits = options_.sessions;
  desk_.now = Now();
  mailbox_->LendTo([this] { Run(); });
  Run();
}

// The turn in which the last session went may still be on, on a thread of the device's.
Executor::~Executor() { mailbox_->TakeForGood(); }

void Executor::Reserve(std::uint64_t memory_bytes) {
  load_.sessions.fetch_add(1, std::memory_order_relaxed);
  load_.memory_bytes.fetch_add(memory_bytes, std::memory_order_relaxed);
}

// The holder's loop: whoever enters it holds the baton, and leaves having laid it down.
void Executor::Run() {
  do {
    for (int round = 0; round < kRoundsPerTurn && mailbox_->Take(items_); ++round) Round();
    Settle();
  } while (!mailbox_->LayDown());
}

void Executor::Round() {
  desk_.now = std::max(Now(), desk_.now);
  for (Item& item : items_) Handle(item);
  items_.clear();
  do {
    desk_.told = false;
    scheduler_.Advance(desk_.now, actions_);
    for (core::Action& action : actions_) CarryOut(action);
    actions_.clear();
  } while (desk_.told);  // an order's end may have let a held job go
  FlushSessions();
  ForgetSessions();
}

void Executor::Handle(Item& item) {
  std::visit(
      [this](auto& what) {
        using What = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<What, TimerFired>) {
          timer_.Fired();
        } else if constexpr (std::is_same_v<What, Request>) {
          what.run();
        } else if constexpr (std::is_same_v<What, device::Lost>) {
          telemetry::Error(what.why.message());
          desk_.Tell(core::DeviceLost{what.why});
          // What the device had has been answered; what waits must not wait for ever.
          for (const auto& session : sessions_) {
            if (session == nullptr) continue;
            session->Close(what.why);
            CountWork(*session);
          }
        } else if constexpr (std::is_same_v<What, device::Restored>) {
          desk_.Tell(core::DeviceRestored{});
        } else {
          On(what);
        }
      },
      item);
}

void Executor::On(FrameArrived& arrived) {
  SessionPort& port = *arrived.port;
  Frame& frame = port.frame;
  const std::size_t end = std::min(frame.messages.size(), frame.handled + kMessagesPerRound);
  for (; frame.handled < end; ++frame.handled) {
    ClientMessage& message = frame.messages[frame.handled];
    if (auto* hello = std::get_if<Hello>(&message)) {
      Open(arrived.port, *hello);
    } else if (port.session != nullptr) {
      port.session->Handle(message, frame.received);
    }
  }
  if (port.session != nullptr) CountWork(*port.session);
  if (end < frame.messages.size()) return Bring(std::move(arrived));  // the rest, after the others
  frame.handled = 0;
  read_on_.push_back(std::move(arrived.port));
}

void Executor::Open(const std::shared_ptr<SessionPort>& port, Hello& hello) {
  hello.name = Printable(std::move(hello.name));
  hello.client = Printable(std::move(hello.client));
  const Status refusal = TryOpen(port, hello);
  if (refusal.ok()) return;
  load_.sessions.fetch_sub(1, std::memory_order_relaxed);
  load_.memory_bytes.fetch_sub(hello.memory_bytes, std::memory_order_relaxed);
  // The name may be what is refused.
  desk_.refusals.Warning(desk_.now, "session '" + hello.name.substr(0, kNameBytes) +
                                        "' refused: " + refusal.ToString());
  std::vector<ServerMessage> last;
  last.push_back(Ended{refusal});
  port->Send(last);
}

Status Executor::TryOpen(const std::shared_ptr<SessionPort>& port, Hello& hello) {
  if (draining_) return *draining_;
  if (hello.name.size() > kNameBytes || hello.client.size() > kNameBytes) {
    return Status(StatusCode::kInvalidArgument, reason::kMalformedFrame,
                  "a name has at most " + std::to_string(kNameBytes) + " bytes");
  }
  const Result<Share> share = Admit(hello.share, desk_.limits, desk_.min_sum);
  if (!share.ok()) return share.status();
  SessionId id = ids_.Take();
  id.serial = options_.session_serials->fetch_add(1, std::memory_order_relaxed) + 1;
  Status opened = id.slot < options_.limits.sessions
                      ? device_->OpenSession(id, {hello.memory_bytes})
                      : Status(StatusCode::kResourceExhausted, reason::kTooMany,
                               "the device has as many sessions as it may");
  if (!opened.ok()) {
    ids_.Release(id);
    return opened;
  }
  if (id.slot >= sessions_.size()) sessions_.resize(id.slot + 1);
  sessions_[id.slot] = std::make_unique<Session>(desk_, id, port, hello, *share);
  Session& session = *sessions_[id.slot];
  port->session = &session;
  desk_.Tell(core::SessionOpened{id, *share});
  session.Send(Welcome{.session = id,
                       .device_index = options_.index,
                       .device = &device_->info(),
                       .preemption_bound = preemption_bound_,
                       .window_jobs = desk_.limits.window_jobs,
                       .window_bytes = desk_.limits.window_bytes,
                       .share = *share,
                       .memory_bytes = hello.memory_bytes});
  telemetry::Info(Named(session) + " opened on " + device_->info().uuid + ": weight " +
                  std::to_string(share->weight) + ", priority " + std::to_string(share->priority) +
                  ", client " + hello.client + ", " + hello.peer);
  return Status::Ok();
}

void Executor::On(StreamClosed& closed) {
  if (closed.port->session == nullptr) return;
  Session& session = *closed.port->session;
  session.Disconnect(closed.why);
  CountWork(session);
}

void Executor::On(ResultsSent& sent) {
  if (sent.port->session != nullptr) sent.port->session->ResultsSent(sent.bytes);
}

void Executor::On(device::Completion& completion) {
  desk_.Tell(MakeFinished(std::move(completion)));
}

void Executor::On(device::Prepared& prepared) {
  const Desk::Prepared claim = desk_.Claim(prepared.ticket);
  if (claim.session == nullptr) {
    telemetry::Error("device " + device_->info().uuid + " answered a preparation nobody asked for");
    return;
  }
  if (claim.session->Prepared(claim.resource, std::move(prepared))) {
    forgotten_.push_back(claim.session);
  } else {
    CountWork(*claim.session);
  }
}

void Executor::On(core::PolicyChanged& change) {
  if (change.spec.generation <= generation_) return;
  generation_ = change.spec.generation;
  promises_shares_ = change.policy->share_rule() != ShareRule::kNone;
  desk_.Tell(std::move(change));
}

void Executor::CarryOut(core::Action& action) {
  std::visit(
      [this](auto& what) {
        using What = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<What, core::StartCommand>) {
          const auto ticket = device::Ticket{static_cast<std::uint64_t>(what.ticket)};
          device_->Start(ticket, MakeCommand(what, desk_.now));
        } else if constexpr (std::is_same_v<What, core::Interrupt>) {
          device_->Interrupt(device::Ticket{static_cast<std::uint64_t>(what.ticket)});
        } else if constexpr (std::is_same_v<What, core::RefuseJob>) {
          Session& session = *static_cast<Body&>(*what.job->body).session;
          session.JobRefused(std::move(what.job), what.why);
          CountWork(session);
        } else {
          On(what);
        }
      },
      action);
}

void Executor::On(core::FinishJob& finish) {
  Session& session = *static_cast<Body&>(*finish.job->body).session;
  session.JobFinished(std::move(finish.job), finish.outcome);
  CountWork(session);
}

void Executor::On(core::SessionGone& gone) { sessions_[gone.session.slot]->LeftCore(); }

void Executor::On(core::RecordSlice& record) {
  for (const auto& feed : feeds_) feed->Put({options_.index, record.slice});
}

void Executor::On(core::PolicyEjected& ejected) {
  generation_ = ejected.now.generation;
  promises_shares_ = true;  // round robin does
  options_.on_ejected(options_.index, std::move(ejected));
}

void Executor::CountWork(Session& session) {
  const bool working = session.has_work();
  if (working == session.counted_working) return;
  session.counted_working = working;
  load_.with_work.fetch_add(working ? 1 : -1, std::memory_order_relaxed);
}

void Executor::FlushSessions() {
  for (Session* session : desk_.unsent) session->Flush();
  desk_.unsent.clear();
}

// Their memory is free and nothing names them any more.
void Executor::ForgetSessions() {
  for (Session* session : forgotten_) {
    const Session::Tally& jobs = session->tally();
    const Status why = session->ended_because();
    telemetry::Info(Named(*session) + " closed: " + (why.ok() ? "goodbye" : why.ToString()) +
                    "; jobs " + std::to_string(jobs.done) + " done, " +
                    std::to_string(jobs.cancelled) + " cancelled, " + std::to_string(jobs.skipped) +
                    " skipped, " + std::to_string(jobs.failed) + " failed, " +
                    std::to_string(jobs.refused) + " refused");
    CountWork(*session);
    load_.sessions.fetch_sub(1, std::memory_order_relaxed);
    load_.memory_bytes.fetch_sub(session->quota(), std::memory_order_relaxed);
    // Last: who hears of it may open the next session in this one's place.
    session->SendEnded();
    const SessionId id = session->id();
    sessions_[id.slot].reset();
    ids_.Release(id);
  }
  forgotten_.clear();
}

// Nothing is left to do for now: let the handled streams read on, and be woken in time.
void Executor::Settle() {
  for (const auto& port : read_on_) port->FrameHandled();
  read_on_.clear();
  const Duration poll = device_->Poll(desk_.now);
  timer_.WakeBy(std::min(scheduler_.NextWakeup(), After(desk_.now, poll)));
}

Session* Executor::Find(std::uint64_t serial) const {
  for (const auto& session : sessions_) {
    if (session != nullptr && session->id().serial == serial) return session.get();
  }
  return nullptr;
}

}  // namespace gpusched::executor
