// gpusched-victim: a client that goes to one point of its life and waits there to be killed.
//
//   gpusched-victim ENDPOINT idle|running|waiting|writing
//
// Connects and prints "up"; at each further line of its input it opens its session and prints the
// id, goes to the point and prints "there", and closes its session as a well-behaved client does.
#include <sys/resource.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "gpusched/client.h"
#include "promises/victim.h"
#include "support/virtual_work.h"

namespace gpusched::bench {
namespace {

// False at the end of the input.
bool ReadLine() {
  int c;
  while ((c = std::getchar()) != '\n') {
    if (c == EOF) return false;
  }
  return true;
}

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Writes until the session is closed: whenever it is killed, it is in the middle of one.
void WriteOnAndOn(Session& session, const Buffer& buffer) {
  const std::vector<char> bytes(kVictimMemory);
  bool said = false;
  while (true) {
    Result<Submission> submission = session.Submit(Job().Write(buffer, bytes));
    if (!submission.ok() || !submission->Wait().ok()) return;
    if (!said) Say("there");
    said = true;
  }
}

Status Live(const std::string& endpoint, const std::string& point) {
  Result<Client> client = Client::Connect({.endpoint = endpoint});
  if (!client.ok()) return client.status();
  Say("up");
  if (!ReadLine()) return Status::Ok();
  Result<Session> session = client->OpenSession({.name = "victim", .memory = kVictimMemory});
  if (!session.ok()) return session.status();
  Say(std::to_string(session->id()));
  if (!ReadLine()) return Status::Ok();

  if (point == "idle") {
    Say("there");
    ReadLine();
    return session->Close();
  }
  Result<Module> module = session->LoadModule({.virtual_text = kWorkModule});
  if (!module.ok()) return module.status();
  Result<Buffer> buffer = session->Allocate(kVictimMemory);
  if (!buffer.ok()) return buffer.status();
  if (point == "writing") {
    std::thread writer([&] { WriteOnAndOn(*session, *buffer); });
    ReadLine();
    const Status closed = session->Close();
    writer.join();
    return closed;
  }
  const Result<Submission> submission =
      session->Submit(LaunchesOf(module->kernel("work"), kVictimLaunch, kVictimLaunch));
  if (!submission.ok()) return submission.status();
  Say("there");
  ReadLine();
  return session->Close();
}

}  // namespace
}  // namespace gpusched::bench

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  // What it costs the host is not what is measured.
  setpriority(PRIO_PROCESS, 0, gpusched::bench::kVictimNice);
  const gpusched::Status status = gpusched::bench::Live(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "gpusched-victim: %s\n", status.ToString().c_str());
  return 1;
}
