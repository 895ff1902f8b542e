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
     .written = "first",
     .fields = "file: the task file\n"
               "strategy: the policy that spends the budget\n"
               "model: the proposer of kernels\n"
               "out: folder of the result\n"
               "evaluator: options of the evaluator: device, python, require_sandbox, use_cache, "
               "runner_threads\n"
               "search: settings of the strategy, with the budget\n"
               "config: each setting with its value and source\n"
               "run: id, task, device, strategy, model and time of creation\n"
               "asked?: the math mode and the bounds of the error that the user asked for\n"
               "rewrites?: algebraic rewrites that recipes may use, if the user chose any\n"
               "baselines?: false, if the run times no baselines\n"
               "profile_best?: true, if the best program gets a profile at the end\n"
               "profile_slower?: true, if the best program gets a profile only when it is slower "
               "than the "
               "fastest known baseline\n"
               "certify_minutes?: limit of the certificate, if there will be one\n"
               "model_settings?: address, prices, limits and tools of the model, if one is asked"},
    {.type = EventType::task,
     .version = 1,
     .written = "when the task is described",
     .fields = "task: the task, as cutegen describe --json prints it\n"
               "admission: whether degenerate solutions fail on the task, and which input families "
               "apply\n"
               "floor_ns: the floor; no kernel is faster\n"
               "floor_bound_by: what bounds the roofline: memory, compute or launch\n"
               "toolchain: the compiler and its version\n"
               "torch: the versions of torch and Python\n"
               "device: where programs run\n"
               "sandbox: the protection in effect\n"
               "reachable_ns?: the reachable bound, since policy 3\n"
               "roofline_ns?: the roofline, since policy 3\n"
               "gpu?: the model of a real GPU\n"
               "driver?: the driver of a real GPU\n"
               "product?: the name that the driver gives the GPU\n"
               "counters?: the tool that reads the counters of a real GPU, or why there is none\n"
               "start?: the program of the source kernel, if the task is a CUDA kernel"},
    {.type = EventType::baselines,
     .version = 1,
     .written = "on a GPU, before the first question",
     .fields =
         "times: list of kind, and time_ns with its interval and origin, or why there is no time\n"
         "note: whether cached times were used, or why not"},
    {.type = EventType::asked,
     .version = 1,
     .written = "before cutegen asks a proposer",
     .fields =
         "role: which role the question is for\n"
         "context: purpose, parent, best time, bounds, bottleneck; for models also line, stage, "
         "approach, advice"},
    {.type = EventType::call_started,
     .version = 1,
     .written = "before a request goes to a model",
     .fields = "call: number of the call\n"
               "label: what the call is for\n"
               "model: the model that is asked\n"
               "request: the whole request\n"
               "request_hash: hash of the request\n"
               "reserved_usd?: the highest possible cost, if a price is known\n"
               "reserved_tokens: the highest number of tokens that the call may use"},
    {.type = EventType::call_ended,
     .version = 1,
     .written = "when the model has answered, or the call has failed",
     .fields = "call: number of the call\n"
               "request_hash: hash of the request\n"
               "reply?: message, stop, usage and cost\n"
               "error?: why the call failed\n"
               "elapsed_ms: the time that this took"},
    {.type = EventType::call_refused,
     .version = 1,
     .written = "instead of a call that the budget forbids",
     .fields = "label: what the call was for\n"
               "request: the whole request\n"
               "request_hash: hash of the request\n"
               "reason: which limit forbids it"},
    {.type = EventType::drafted,
     .version = 1,
     .written = "before the evaluation of a draft that a model gave to a tool",
     .fields = "candidate: the whole draft, with its id"},
    {.type = EventType::tool_called,
     .version = 1,
     .written = "after a model called a tool",
     .fields = "tool: name of the tool\n"
               "arguments_hash: hash of the arguments, which are in the call_ended before it\n"
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
               "reasks?: why cutegen asked a model again"},
    {.type = EventType::evaluation_started,
     .version = 1,
     .written = "before an evaluation",
     .fields = "candidate: id of the candidate\n"
               "up_to: the last rung of the evaluation\n"
               "profile: whether it includes a profile\n"
               "tests?: the proposed tests that it uses, in addition to the evaluator's own"},
    {.type = EventType::evaluated,
     .version = 1,
     .written = "with the verdict; a retry follows if it is aborted",
     .fields = "candidate: id of the candidate\n"
               "verdict: the whole verdict\n"
               "elapsed_ms: the time that this took"},
    {.type = EventType::accepted,
     .version = 1,
     .written = "when the candidate becomes the incumbent",
     .fields = "candidate: id of the candidate\n"
               "reason: why it was accepted"},
    {.type = EventType::rejected,
     .version = 1,
     .written = "when the candidate does not become the incumbent; the reason says 'set aside' if "
                "it could "
                "not be judged",
     .fields = "candidate: id of the candidate\n"
               "reason: why it was rejected"},
    {.type = EventType::profiled,
     .version = 1,
     .written = "before finished, if the best program has no profile yet",
     .fields = "candidate: id of the best program\n"
               "profile?: profile of the best program\n"
               "why?: why there is no profile"},
    {.type = EventType::certifying,
     .version = 1,
     .written = "on a GPU, before cutegen certifies the best program",
     .fields = "candidate: id of the best program\n"
               "limit_ms: the time that the certificate may take"},
    {.type = EventType::certified,
     .version = 1,
     .written =
         "when the certificate is made or has failed; until then, cutegen resume certifies again",
     .fields = "candidate: id of the best program\n"
               "certificate?: the certificate, cutegen.certificate.v1\n"
               "why?: why there is no certificate"},
    {.type = EventType::compared,
     .version = 1,
     .written = "before finished, if baselines are known",
     .fields = "candidate: id of the best program\n"
               "time_ns: time of the best program\n"
               "against: each baseline with its time and speedup\n"
               "best: the fastest baseline in the math mode"},
    {.type = EventType::interrupted,
     .version = 1,
     .written = "on Ctrl-C or a deadline",
     .fields = "reason: interrupted by Ctrl-C, or by the deadline"},
    {.type = EventType::resumed,
     .version = 1,
     .written = "when a new process continues the run",
     .fields = ""},
    {.type = EventType::finished,
     .version = 1,
     .written = "last; only imported may follow",
     .fields = "reason: why the search ended\n"
               "best: id of the best program; empty if no program is correct"},
    {.type = EventType::imported,
     .version = 1,
     .written = "by cutegen import, into a finished run",
     .fields = "candidate: the whole candidate\n"
               "verdict: the verdict; the origin of its figures is imported\n"
               "entry: name of the imported entry\n"
               "entry_sha256: hash of the imported entry\n"
               "device: the GPU of its figures\n"
               "origin: origin of its figures on the other machine\n"
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
