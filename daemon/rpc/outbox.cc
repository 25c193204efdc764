// Gathers messages into frames and cuts results into pieces.
#include "rpc/outbox.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "rpc/wire.h"

namespace gpusched::rpc {

bool Outbox::Put(std::vector<executor::ServerMessage>& messages) {
  if (empty()) Clear();
  if (waiting_.empty()) {
    waiting_.swap(messages);
  } else {
    std::move(messages.begin(), messages.end(), std::back_inserter(waiting_));
  }
  messages.clear();
  return waiting_.size() - first_ <= kUnread;
}

void Outbox::Clear() {
  waiting_.clear();
  first_ = piece_ = 0;
  piece_offset_ = result_offset_ = 0;
}

bool Outbox::holds_results() const {
  return std::any_of(waiting_.begin() + static_cast<std::ptrdiff_t>(first_), waiting_.end(),
                     [](const executor::ServerMessage& message) {
                       return std::holds_alternative<executor::JobResult>(message);
                     });
}

Outbox::Filled Outbox::Fill(v1::ServerFrame& frame) {
  frame.Clear();
  Filled filled;
  std::size_t bytes = 0;
  while (!empty() && bytes < kFrameTarget) {
    executor::ServerMessage& message = waiting_[first_];
    if (auto* result = std::get_if<executor::JobResult>(&message)) {
      if (!FillResult(*result, frame, bytes, filled.result_bytes)) break;
      piece_ = 0;
      result_offset_ = 0;
      *result = {};  // its memory is not kept until the others are out
    } else {
      v1::ServerMessage& to = *frame.add_messages();
      std::visit(
          [&to](const auto& from) {
            using From = std::decay_t<decltype(from)>;
            if constexpr (!std::is_same_v<From, executor::JobResult>) Encode(from, to);
          },
          message);
      filled.last = std::holds_alternative<executor::Ended>(message);
      bytes += to.ByteSizeLong();
    }
    ++first_;
  }
  if (empty()) Clear();
  return filled;
}

bool Outbox::FillResult(executor::JobResult& result, v1::ServerFrame& frame, std::size_t& bytes,
                        std::uint64_t& result_bytes) {
  while (piece_ < result.pieces.size()) {
    const executor::Piece& piece = result.pieces[piece_];
    if (bytes >= kFrameTarget) return false;
    const std::uint64_t size =
        std::min<std::uint64_t>(piece.size - piece_offset_, kFrameTarget - bytes);
    v1::Data& data = *frame.add_messages()->mutable_result();
    data.set_staging(result.job);
    data.set_offset(result_offset_);
    data.set_content(piece.bytes.get() + piece_offset_, size);
    bytes += size;
    result_bytes += size;
    piece_offset_ += size;
    result_offset_ += size;
    if (piece_offset_ == piece.size) {
      ++piece_;
      piece_offset_ = 0;
    }
  }
  return true;
}

}  // namespace gpusched::rpc
