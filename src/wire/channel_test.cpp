// SPDX-License-Identifier: Apache-2.0
#include "wire/channel.h"

#include "base/fields.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <thread>

namespace cutegen::wire {
namespace {

using std::chrono::milliseconds;

struct Pair {
  Pair() {
    auto made = Channel::make_pair();
    a = std::move(made->first);
    b = std::move(made->second);
  }
  void raw(std::string_view bytes) {
    ASSERT_EQ(::write(a.fd(), bytes.data(), bytes.size()), ssize_t(bytes.size()));
  }
  Channel a, b;
  Context soon = Context().with_timeout(milliseconds(200));
};

std::string framed(std::string_view body) {
  std::string out;
  for (int i = 0; i < 4; ++i) out += char(body.size() >> (8 * i));
  return out.append(body);
}

TEST(Channel, CarriesJsonAndDescriptors) {
  Pair p;
  auto memory = make_memfd("payload", 4096);
  ASSERT_TRUE(memory);
  ASSERT_EQ(::pwrite(memory->get(), "hello", 5, 0), 5);
  std::vector<int> fds{memory->get()};
  ASSERT_TRUE(p.a.send(p.soon, {{"schema", "t.v1"}, {"n", 7}}, fds));
  auto frame = p.b.receive(p.soon);
  ASSERT_TRUE(frame) << frame.error().text();
  EXPECT_EQ(frame->body["n"], 7);
  ASSERT_EQ(frame->fds.size(), 1u);
  char text[6]{};
  EXPECT_EQ(::pread(frame->fds[0].get(), text, 5, 0), 5);
  EXPECT_STREQ(text, "hello");
  EXPECT_TRUE(::fcntl(frame->fds[0].get(), F_GETFD) & FD_CLOEXEC);
}

TEST(Channel, CarriesFramesLargerThanTheSocketBuffer) {
  Pair p;
  std::string big(5 << 20, 'x');
  std::thread sender([&] { EXPECT_TRUE(p.a.send(Context(), {{"text", big}})); });
  auto frame = p.b.receive(Context().with_timeout(std::chrono::seconds(10)));
  sender.join();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->body["text"].get_ref<const std::string&>(), big);
}

TEST(Channel, KeepsFramesApart) {
  Pair p;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(p.a.send(p.soon, {{"i", i}}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(p.b.receive(p.soon)->body["i"], i);
}

TEST(Channel, ReadsAFrameThatComesByteByByte) {
  Pair p;
  std::thread writer([&] {
    for (char c : framed(R"({"slow":true})")) {
      p.raw({&c, 1});
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  auto frame = p.b.receive(Context().with_timeout(std::chrono::seconds(5)));
  writer.join();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->body["slow"], true);
}

TEST(Channel, ClosedPeerIsAWorldError) {
  Pair p;
  p.a.close();
  auto got = p.b.receive(p.soon);
  ASSERT_FALSE(got);
  EXPECT_TRUE(is_closed(got.error()));
  EXPECT_TRUE(is_closed(p.b.send(p.soon, {{"a", 1}}).error()));  // and no SIGPIPE
  EXPECT_TRUE(is_closed(p.a.send(p.soon, {{"a", 1}}).error()));
}

TEST(Channel, PeerThatEndsInsideAFrameIsClosed) {
  Pair p;
  p.raw(framed(R"({"whole":1})").substr(0, 9));
  p.a.close();
  EXPECT_TRUE(is_closed(p.b.receive(p.soon).error()));
}

TEST(Channel, TimeoutBeforeAFrameLeavesTheChannelUsable) {
  Pair p;
  auto got = p.b.receive(Context().with_timeout(milliseconds(5)));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, ErrorKind::timeout);
  ASSERT_TRUE(p.a.send(p.soon, {{"a", 1}}));
  EXPECT_TRUE(p.b.receive(p.soon));
}

TEST(Channel, TimeoutInsideAFrameClosesIt) {
  Pair p;
  p.raw(framed(R"({"whole":1})").substr(0, 6));
  auto got = p.b.receive(Context().with_timeout(milliseconds(5)));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, ErrorKind::timeout);
  EXPECT_FALSE(p.b);
}

TEST(Channel, SlowReaderMeetsTheDeadline) {
  Pair p;
  auto sent =
      p.a.send(Context().with_timeout(milliseconds(400)), {{"t", std::string(300'000, 'x')}});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().kind, ErrorKind::timeout);
  EXPECT_FALSE(p.a);
}

TEST(Channel, StopEndsAWait) {
  Pair p;
  std::stop_source stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(milliseconds(10));
    stop.request_stop();
  });
  auto got = p.b.receive(Context(stop.get_token()));
  stopper.join();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, ErrorKind::cancelled);
}

TEST(Channel, SignalsDoNotBreakAWait) {
  struct sigaction quiet{}, before{};
  quiet.sa_handler = [](int) {};  // no SA_RESTART: system calls see EINTR
  ::sigaction(SIGUSR1, &quiet, &before);
  Pair p;
  pthread_t reader = ::pthread_self();
  std::thread sender([&] {
    for (int i = 0; i < 5; ++i) {
      ::pthread_kill(reader, SIGUSR1);
      std::this_thread::sleep_for(milliseconds(2));
    }
    EXPECT_TRUE(p.a.send(Context(), {{"a", 1}}));
  });
  EXPECT_TRUE(p.b.receive(Context().with_timeout(std::chrono::seconds(5))));
  sender.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(Channel, RefusesBadFrames) {
  const std::pair<std::string, std::string> cases[] = {
      {std::string("\xff\xff\xff\xff", 4), "announces 4294967295 bytes"},
      {framed("{\"a\":"), "not valid JSON"},
      {framed(""), "not valid JSON"},
      {framed("[1]"), "not a JSON object"},
      {framed("7"), "not a JSON object"},
      {framed(std::string(100000, '[')), "not valid JSON"},
      {framed("{\"a\":\"\xff\xfe\"}"), "not valid JSON"},
  };
  for (const auto& [bytes, message] : cases) {
    Pair p;
    p.raw(bytes);
    auto got = p.b.receive(p.soon);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().kind, ErrorKind::world);
    EXPECT_NE(got.error().message.find(message), std::string::npos) << got.error().message;
    EXPECT_FALSE(p.b) << "a peer that breaks the protocol is cut off";
  }
}

TEST(Channel, RefusesTooManyDescriptorsAndKeepsNone) {
  Pair p;
  constexpr size_t kCount = 20;
  alignas(cmsghdr) char control[CMSG_SPACE(kCount * sizeof(int))]{};
  std::string bytes = framed("{}");
  iovec part{bytes.data(), bytes.size()};
  msghdr m{};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof control;
  cmsghdr* c = CMSG_FIRSTHDR(&m);
  *c = {CMSG_LEN(kCount * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
  for (size_t i = 0; i < kCount; ++i) reinterpret_cast<int*>(CMSG_DATA(c))[i] = STDERR_FILENO;
  ASSERT_GT(::sendmsg(p.a.fd(), &m, 0), 0);
  int before = ::dup(0);
  ::close(before);
  auto got = p.b.receive(p.soon);
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message.find("more than 8 descriptors"), std::string::npos);
  int after = ::dup(0);
  ::close(after);
  EXPECT_LE(after, before) << "descriptors leaked";
}

TEST(Channel, RandomBytesNeverHangOrCrash) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Pair p;
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = char(random());
    if (round % 2 && bytes.size() > 4) bytes[2] = bytes[3] = 0;  // plausible length
    p.raw(bytes);
    p.a.close();
    while (auto got = p.b.receive(p.soon)) EXPECT_TRUE(got->body.is_object());
    EXPECT_TRUE(is_closed(p.b.receive(p.soon).error()));
  }
}

TEST(Channel, CallReturnsTheReplyOrThePeersError) {
  Pair p;
  std::thread peer([&] {
    auto first = p.b.receive(Context());
    EXPECT_TRUE(p.b.send(Context(), {{"double", first->body["n"].get<int>() * 2}}));
    EXPECT_TRUE(p.b.receive(Context()));
    EXPECT_TRUE(p.b.send_error(Context(), {ErrorKind::user, "bad n", "plan.json#/n", "give 1"}));
  });
  Context ctx = Context().with_timeout(std::chrono::seconds(5));
  auto good = p.a.call(ctx, {{"n", 21}});
  auto bad = p.a.call(ctx, {{"n", -1}});
  peer.join();
  ASSERT_TRUE(good);
  EXPECT_EQ(good->body["double"], 42);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().kind, ErrorKind::user);
  EXPECT_EQ(bad.error().text(), "plan.json#/n: error: bad n (give 1)");
}

TEST(WireError, SurvivesHostileJson) {
  EXPECT_EQ(error_from_json(Json{{"kind", "nonsense"}, {"message", 7}}).kind, ErrorKind::world);
  EXPECT_FALSE(error_from_json(Json::array()).message.empty());
  EXPECT_EQ(error_from_json(Json{{"message", "\x1b[31mred"}}).message, "red");
  for (ErrorKind kind : {ErrorKind::user, ErrorKind::world, ErrorKind::timeout,
                         ErrorKind::cancelled, ErrorKind::unsupported, ErrorKind::internal})
    EXPECT_EQ(error_from_json(to_json(Error{kind, "m"})).kind, kind);
}

}  // namespace
}  // namespace cutegen::wire
