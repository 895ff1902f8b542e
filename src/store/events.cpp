// SPDX-License-Identifier: Apache-2.0
#include "store/events.h"

namespace cutegen::store {

namespace {

// One event type: its current version, when a run writes it, and its fields. A field is one line,
// "name: meaning", or "name?: meaning" if some events lack it. Every event also has clock_ms.
// tools/reference.py prints this table; the e2e tests compare it with their journals.
struct Form {
  EventType type;
  int version;
  const char* written;
  const char* fields;
};

constexpr Form kTypes[] = {
    {.type = EventType::opened,
     .version = 1,
     .written = "at the start of the run",
     .fields = "file: the task file\n"
               "strategy: the search strategy\n"
               "model: the proposer of kernels\n"
               "out: the folder for the best program\n"
               "evaluator: options of the evaluator: device, python, require_sandbox, use_cache, "
               "runner_threads\n"
               "search: the settings of the strategy, including the budget\n"
               "config: each setting with its value and source\n"
               "run: id, task, device, strategy, model and time of creation\n"
               "asked?: the math mode and the bounds of the error that the user asked for\n"
               "rewrites?: algebraic rewrites that recipes may use, if the user chose any\n"
               "baselines?: false if the user turned the baselines off (--baseline none)\n"
               "profile_best?: true if cutegen profiles the best program at the end\n"
               "profile_slower?: true if cutegen profiles the best program at the end only if it "
               "is slower than the fastest known baseline\n"
               "certify_minutes?: minutes for the certificate, if one was requested\n"
               "model_settings?: address, prices, limits and tools of the language model, if the "
               "run uses one"},
    {.type = EventType::task,
     .version = 1,
     .written = "after the evaluator has described the task",
     .fields = "task: the task, as cutegen describe --json prints it\n"
               "admission: whether degenerate solutions fail on the task, and which input families "
               "apply\n"
               "floor_ns: the floor, a lower bound of the time of every correct kernel\n"
               "floor_bound_by: the limiting factor of the roofline: memory, compute or launch\n"
               "toolchain: the compiler and its version\n"
               "torch: the versions of torch and Python\n"
               "device: the simulator or GPU that runs the programs\n"
               "sandbox: the protections of the sandbox that were in effect\n"
               "reachable_ns?: the reachable bound (only in runs of policy 3 or later)\n"
               "roofline_ns?: the roofline (only in runs of policy 3 or later)\n"
               "gpu?: the GPU model, if the device is a GPU\n"
               "driver?: the version of the GPU driver, if the device is a GPU\n"
               "product?: the name that the driver gives the GPU\n"
               "counters?: on a GPU, the tool that reads hardware counters, or the reason why no "
               "tool can\n"
               "start?: the user's kernel as a program, if the task is a CUDA kernel"},
    {.type = EventType::baselines,
     .version = 1,
     .written = "on a GPU, before the strategy's first question",
     .fields =
         "times: for each baseline its kind and its time with interval and origin, or the reason "
         "why it has no time\n"
         "note: whether cached times were used, and if not, why"},
    {.type = EventType::asked,
     .version = 1,
     .written = "before cutegen asks the proposer",
     .fields =
         "role: the role in which the proposer answers\n"
         "context: the purpose, the parent, the best time, the bounds and the bottleneck; for a "
         "language model also the line, the stage, the approach and the advice"},
    {.type = EventType::call_started,
     .version = 1,
     .written = "before cutegen sends a request to a model",
     .fields = "call: number of the call\n"
               "label: the purpose of the call\n"
               "model: the model that receives the request\n"
               "request: the whole request\n"
               "request_hash: hash of the request\n"
               "reserved_usd?: the highest possible cost, if a price is known\n"
               "reserved_tokens: the highest number of tokens that the call may use"},
    {.type = EventType::call_ended,
     .version = 1,
     .written = "after the model has answered or the call has failed",
     .fields = "call: number of the call\n"
               "request_hash: hash of the request\n"
               "reply?: message, stop, usage and cost\n"
               "error?: why the call failed\n"
               "elapsed_ms: the duration of the call"},
    {.type = EventType::call_refused,
     .version = 1,
     .written = "if the budget forbids a call, instead of call_started",
     .fields = "label: the purpose of the call\n"
               "request: the whole request\n"
               "request_hash: hash of the request\n"
               "reason: the limit that forbids the call"},
    {.type = EventType::drafted,
     .version = 1,
     .written = "before cutegen evaluates a draft that a model passed to a tool",
     .fields = "candidate: the whole draft, with its id"},
    {.type = EventType::tool_called,
     .version = 1,
     .written = "after a tool call of a model has ended",
     .fields =
         "tool: name of the tool\n"
         "arguments_hash: hash of the call's arguments; the preceding call_ended contains the "
         "arguments\n"
         "text: the result\n"
         "is_error: whether the tool failed"},
    {.type = EventType::answered,
     .version = 1,
     .written = "when the proposer has answered",
     .fields = "outcome: proposed, advised, unusable or nothing\n"
               "candidate?: the whole candidate, if one was proposed\n"
               "advice?: the advice, if the outcome is advised\n"
               "tests?: the tests, if a tester proposed some\n"
               "reason?: why there is no candidate, advice or test\n"
               "reasks?: for each answer that cutegen could not use, the reason"},
    {.type = EventType::evaluation_started,
     .version = 1,
     .written = "before an evaluation",
     .fields =
         "candidate: id of the candidate\n"
         "up_to: the last rung (stage) of the evaluation\n"
         "profile: whether the evaluation includes a profile\n"
         "tests?: the proposed tests that the evaluation uses, in addition to the evaluator's "
         "own"},
    {.type = EventType::evaluated,
     .version = 1,
     .written =
         "when the evaluation has ended; if its verdict is aborted, cutegen may evaluate the "
         "candidate again",
     .fields = "candidate: id of the candidate\n"
               "verdict: the whole verdict\n"
               "elapsed_ms: the duration of the evaluation"},
    {.type = EventType::accepted,
     .version = 1,
     .written = "when the candidate becomes the incumbent",
     .fields = "candidate: id of the candidate\n"
               "reason: why it was accepted"},
    {.type = EventType::rejected,
     .version = 1,
     .written =
         "when the strategy rejects the candidate; the reason begins with 'set aside' if the "
         "evaluator could not judge it",
     .fields = "candidate: id of the candidate\n"
               "reason: why it was rejected"},
    {.type = EventType::profiled,
     .version = 1,
     .written = "before finished, if cutegen profiles the best program",
     .fields = "candidate: id of the best program\n"
               "profile?: profile of the best program\n"
               "why?: why there is no profile"},
    {.type = EventType::certifying,
     .version = 1,
     .written = "on a GPU, before cutegen certifies the best program",
     .fields = "candidate: id of the best program\n"
               "limit_ms: the time limit for certifying"},
    {.type = EventType::certified,
     .version = 1,
     .written =
         "when certifying has ended or failed; if this event is missing, cutegen resume certifies "
         "again",
     .fields = "candidate: id of the best program\n"
               "certificate?: the certificate, cutegen.certificate.v1\n"
               "why?: why there is no certificate"},
    {.type = EventType::compared,
     .version = 1,
     .written = "before finished, if the run has baseline times",
     .fields = "candidate: id of the best program\n"
               "time_ns: time of the best program\n"
               "against: each baseline with its time and the speedup over it\n"
               "best: the fastest baseline that is as precise as the math mode requires"},
    {.type = EventType::interrupted,
     .version = 1,
     .written = "when the user presses Ctrl-C or a time limit is reached",
     .fields = "reason: 'stopped' after Ctrl-C, 'out of time' after the time limit"},
    {.type = EventType::resumed,
     .version = 1,
     .written = "when a new process continues the run",
     .fields = ""},
    {.type = EventType::finished,
     .version = 1,
     .written = "at the end of the run; only imported may follow",
     .fields = "reason: why the search ended\n"
               "best: id of the best program; empty if no program is correct"},
    {.type = EventType::imported,
     .version = 1,
     .written = "when cutegen import adds a verdict to a finished run",
     .fields = "candidate: the whole candidate\n"
               "verdict: the verdict, whose figures have the origin 'imported'\n"
               "entry: name of the imported entry\n"
               "entry_sha256: hash of the imported entry\n"
               "device: the device on which the figures were measured\n"
               "origin: the origin of the figures on the other machine\n"
               "decision: accepted or rejected\n"
               "reason: why it was accepted or rejected"},
};

}  // namespace

int event_version(EventType type) {
  for (const Form& form : kTypes)
    if (type == form.type) return form.version;
  CG_ASSERT(false);
}

Result<EventType> event_type_of(const std::string& name, int64_t seq) {
  if (auto known = parse_event_type(name)) return *known;
  return user_error("the journal has an event of unknown type '" + name + "'",
                    "event " + std::to_string(seq),
                    "read it with the version of cutegen that wrote it");
}

const Upcasts& journal_upcasts() {
  static const Upcasts none;  // every type is still at version 1
  return none;
}

Result<Event> upcast(Event event, const Upcasts& steps) {
  for (auto it = steps.find({event.type, event.version}); it != steps.end();
       it = steps.find({event.type, event.version})) {
    event.data = it->second(std::move(event.data));
    ++event.version;
  }
  const int known = event_version(event.type);
  if (event.version != known)
    return user_error(
        std::string("the journal has a '") + to_string(event.type) + "' event of version " +
            std::to_string(event.version) + "; this program reads version " + std::to_string(known),
        "event " + std::to_string(event.seq), "read it with the version of cutegen that wrote it");
  return event;
}

}  // namespace cutegen::store
