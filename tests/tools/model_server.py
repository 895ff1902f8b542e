#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scripted language model on localhost that speaks three APIs, with faults on request.

Usage: model_server.py [--port N] [--script FILE]     prints "port N"; ends when its stdin closes

APIs, below http://127.0.0.1:PORT/NAME/v1: /chat/completions, /responses (OpenAI), /messages
(Anthropic), streamed or whole as the request asks. NAME keeps scripts of several tests apart;
--script sets the one named "model".
Control: POST /NAME with a script; POST or GET /NAME/log gives what was asked: [{api, headers, body,
did}].

As the real APIs do, it refuses (400) a dialogue in which a call of a tool has no result, or the other
way round.

A script is {"steps": [STEP...]} (one a request, in order), or {"rules": [{"when": REGEX,
"replies": [STEP...]}...]}: the first rule found in the newest user text answers; an equal request
gets an equal answer, a new one the rule's next reply (the last one repeats). "chaos": {"rate": 0.2,
"seed": 1, "kinds": [FAULT...]} puts random faults before either; they use up no step. Each kind
strikes once, in a random order, before one strikes again.

A STEP is a reply, a fault, or both (the fault strikes in the middle of the reply):
  {"text", "reasoning", "calls": [{"name", "arguments": object or text}], "stop":
   end|tool|length|refusal, "usage": {input, cached, cache_written, output, reasoning} or null,
   "whole": true (not streamed), "pieces": N (bytes a write), "delay_ms", "fault", "hang": true
   (the connection stays open after the end)}
  status: "status", "headers", "body"    close: no answer            silent: nothing at all
  stall: the head of an answer, then nothing                         html: 502 with a page
  cut, clean_cut, bad_json, error_event, stall_mid: in the middle of a stream
  error_inside: 200 with an error object  garbage: 200 with a page    flood: a stream without end
"""
from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

STALL_SECONDS = 60
CHAOS = ["status", "overloaded", "close", "cut", "clean_cut", "bad_json", "error_event",
         "error_inside", "html"]
USAGE = {"input": 100, "cached": 0, "cache_written": 0, "output": 20, "reasoning": 0}


Json = dict[str, Any]
Event = tuple[str | None, Json | str]  # of a stream: its name, if the API has names, and its data
Group = tuple[list[str], list[str]]  # the ids of calls, and of the results behind them


class Api(Protocol):
    def events(self, step: Json, model: str) -> Iterator[Event]:
        """A reply as a stream."""

    def whole(self, step: Json, model: str) -> Json:
        """A reply in one piece."""

    def error(self, kind: str, message: str) -> Event:
        """What says that something went wrong, in a stream too."""

    def newest(self, body: Json) -> str:
        """The newest text of the user."""

    def unanswered(self, body: Json) -> list[Group]:
        """Calls whose results are not the ones that follow."""


def usage_of(step: Json) -> Json | None:
    if "usage" in step and step["usage"] is None:
        return None
    return {**USAGE, **step.get("usage", {})}


def arguments_text(call: Json) -> str:
    arguments = call["arguments"]
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def halves(text: str) -> list[str]:
    middle = (len(text) + 1) // 2
    return [part for part in (text[:middle], text[middle:]) if part]


class Chat:
    """OpenAI chat completions."""

    STOPS = {"end": "stop", "tool": "tool_calls", "length": "length", "refusal": "content_filter"}

    @staticmethod
    def usage(u: Json) -> Json:
        return {"prompt_tokens": u["input"] + u["cached"] + u["cache_written"],
                "completion_tokens": u["output"],
                "prompt_tokens_details": {"cached_tokens": u["cached"],
                                          "cache_write_tokens": u["cache_written"]},
                "completion_tokens_details": {"reasoning_tokens": u["reasoning"]}}

    @classmethod
    def events(cls, step: Json, model: str) -> Iterator[Event]:
        def chunk(delta: Json, reason: str | None = None) -> Json:
            return {"id": "c1", "object": "chat.completion.chunk", "model": model,
                    "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        yield None, chunk({"role": "assistant", "content": ""})
        for part in halves(step.get("reasoning", "")):
            yield None, chunk({"reasoning_content": part})
        for part in halves(step.get("text", "")):
            yield None, chunk({"content": part})
        for index, call in enumerate(step.get("calls", [])):
            head = {"index": index, "id": f"call_{index}", "type": "function",
                    "function": {"name": call["name"], "arguments": ""}}
            yield None, chunk({"tool_calls": [head]})
            for part in halves(arguments_text(call)):
                yield None, chunk({"tool_calls": [{"index": index,
                                                   "function": {"arguments": part}}]})
        yield None, chunk({}, cls.STOPS[stop_of(step)])
        if u := usage_of(step):
            yield None, {"id": "c1", "model": model, "choices": [], "usage": cls.usage(u)}
        yield None, "[DONE]"

    @classmethod
    def whole(cls, step: Json, model: str) -> Json:
        message = {"role": "assistant", "content": step.get("text", "")}
        if step.get("reasoning"):
            message["reasoning_content"] = step["reasoning"]
        if step.get("calls"):
            message["tool_calls"] = [
                {"id": f"call_{i}", "type": "function",
                 "function": {"name": c["name"], "arguments": arguments_text(c)}}
                for i, c in enumerate(step["calls"])]
        out = {"id": "c1", "model": model,
               "choices": [{"index": 0, "message": message,
                            "finish_reason": cls.STOPS[stop_of(step)]}]}
        u = usage_of(step)
        return {**out, "usage": cls.usage(u)} if u else out

    @staticmethod
    def error(kind: str, message: str) -> Event:
        return None, {"error": {"message": message, "type": kind, "code": kind}}

    @staticmethod
    def newest(body: Json) -> str:
        return next((m["content"] for m in reversed(body["messages"]) if m["role"] == "user"), "")

    @staticmethod
    def unanswered(body: Json) -> list[Group]:
        """The ids of calls, each group to be followed by its results."""
        groups: list[Group] = [([], [])]
        for message in body["messages"]:
            if message["role"] == "assistant":
                groups.append(([c["id"] for c in message.get("tool_calls", [])], []))
            elif message["role"] == "tool":
                groups[-1][1].append(message["tool_call_id"])
        return [group for group in groups if group[0] != group[1]]


class Responses:
    """OpenAI responses."""

    @staticmethod
    def usage(u: Json) -> Json:
        return {"input_tokens": u["input"] + u["cached"] + u["cache_written"],
                "input_tokens_details": {"cached_tokens": u["cached"],
                                         "cache_write_tokens": u["cache_written"]},
                "output_tokens": u["output"],
                "output_tokens_details": {"reasoning_tokens": u["reasoning"]}}

    @classmethod
    def whole(cls, step: Json, model: str) -> Json:
        output = []
        if step.get("reasoning"):
            output.append({"type": "reasoning", "id": "rs_1", "summary": [],
                           "encrypted_content": "sealed:" + step["reasoning"]})
        if step.get("text") or not step.get("calls"):
            refusal = stop_of(step) == "refusal"
            part = ({"type": "refusal", "refusal": step.get("text", "")} if refusal else
                    {"type": "output_text", "text": step.get("text", ""), "annotations": []})
            output.append({"type": "message", "id": "msg_1", "role": "assistant",
                           "content": [part]})
        for i, call in enumerate(step.get("calls", [])):
            output.append({"type": "function_call", "id": f"fc_{i}", "call_id": f"call_{i}",
                           "name": call["name"], "arguments": arguments_text(call)})
        out: Json = {"id": "resp_1", "object": "response", "model": model, "output": output,
                     "status": "completed"}
        if stop_of(step) == "length":
            out.update(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
        u = usage_of(step)
        return {**out, "usage": cls.usage(u)} if u else out

    @classmethod
    def events(cls, step: Json, model: str) -> Iterator[Event]:
        whole = cls.whole(step, model)
        number = 0

        def event(kind: str, **fields: Any) -> Event:
            nonlocal number
            number += 1
            return kind, {"type": kind, "sequence_number": number, **fields}
        yield event("response.created", response={**whole, "output": [], "status": "in_progress"})
        for index, item in enumerate(whole["output"]):
            yield event("response.output_item.added", output_index=index, item=item)
            for part in halves(step.get("text", "") if item["type"] == "message" else ""):
                yield event("response.output_text.delta", output_index=index, delta=part)
            yield event("response.output_item.done", output_index=index, item=item)
        yield event("response." + whole["status"], response=whole)

    @staticmethod
    def error(kind: str, message: str) -> Event:
        return "error", {"type": "error", "error": {"type": kind, "code": kind, "message": message}}

    @staticmethod
    def unanswered(body: Json) -> list[Group]:
        calls, results = [], []
        for item in body["input"]:
            if item.get("type") == "function_call":
                calls.append(item["call_id"])
            if item.get("type") == "function_call_output":
                results.append(item["call_id"])
        return [] if calls == results else [(calls, results)]

    @staticmethod
    def newest(body: Json) -> str:
        for item in reversed(body["input"]):
            if item.get("role") == "user":
                return item["content"][0]["text"]
        return ""


class Messages:
    """Anthropic messages."""

    STOPS = {"end": "end_turn", "tool": "tool_use", "length": "max_tokens", "refusal": "refusal"}

    @staticmethod
    def usage(u: Json) -> Json:
        return {"input_tokens": u["input"], "cache_read_input_tokens": u["cached"],
                "cache_creation_input_tokens": u["cache_written"], "output_tokens": u["output"],
                "output_tokens_details": {"thinking_tokens": u["reasoning"]}}

    @staticmethod
    def blocks(step: Json) -> list[Json]:
        out = []
        if step.get("reasoning"):
            out.append({"type": "thinking", "thinking": step["reasoning"], "signature": "signed"})
        if step.get("text"):
            out.append({"type": "text", "text": step["text"]})
        for i, call in enumerate(step.get("calls", [])):
            out.append({"type": "tool_use", "id": f"call_{i}", "name": call["name"],
                        "input": call["arguments"]})
        return out

    @classmethod
    def whole(cls, step: Json, model: str) -> Json:
        out = {"id": "msg_1", "type": "message", "role": "assistant", "model": model,
               "content": cls.blocks(step), "stop_reason": cls.STOPS[stop_of(step)]}
        u = usage_of(step)
        return {**out, "usage": cls.usage(u)} if u else out

    @classmethod
    def events(cls, step: Json, model: str) -> Iterator[Event]:
        whole = {**cls.whole(step, model), "content": [], "stop_reason": None}
        if usage_of(step):
            whole["usage"] = {**whole["usage"], "output_tokens": 1}
        yield "message_start", {"type": "message_start", "message": whole}
        yield "ping", {"type": "ping"}
        for index, block in enumerate(cls.blocks(step)):
            yield from cls.block_events(index, block)
        final = {"type": "message_delta", "delta": {"stop_reason": cls.STOPS[stop_of(step)]}}
        if u := usage_of(step):
            final["usage"] = {"output_tokens": u["output"],
                              "output_tokens_details": cls.usage(u)["output_tokens_details"]}
        yield "message_delta", final
        yield "message_stop", {"type": "message_stop"}

    @staticmethod
    def block_events(index: int, block: Json) -> Iterator[Event]:
        kinds = {"text": ("text", "text_delta"), "thinking": ("thinking", "thinking_delta"),
                 "tool_use": ("partial_json", "input_json_delta")}
        field, delta_type = kinds[block["type"]]
        empty: Json = {**block, "input": {}} if block["type"] == "tool_use" else {**block, field: ""}
        empty.pop("signature", None)
        yield "content_block_start", {"type": "content_block_start", "index": index,
                                      "content_block": empty}
        text = (arguments_text({"arguments": block["input"]}) if block["type"] == "tool_use"
                else block[field])
        deltas = [{"type": delta_type, field: part} for part in halves(text)]
        if "signature" in block:
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index,
                                          "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}

    @staticmethod
    def error(kind: str, message: str) -> Event:
        return "error", {"type": "error", "error": {"type": kind, "message": message}}

    @staticmethod
    def unanswered(body: Json) -> list[Group]:
        groups, messages = [], body["messages"]
        for message, after in zip(messages, messages[1:] + [{"content": []}]):
            if message["role"] != "assistant":
                continue
            calls = [b["id"] for b in message["content"] if b["type"] == "tool_use"]
            results = [b["tool_use_id"] for b in after["content"] if b["type"] == "tool_result"]
            if calls != results:
                groups.append((calls, results))
        return groups

    @staticmethod
    def newest(body: Json) -> str:
        for message in reversed(body["messages"]):
            if message["role"] == "user":
                return " ".join(b.get("text", "") for b in message["content"])
        return ""


APIS: dict[str, Api] = {"chat/completions": Chat, "responses": Responses, "messages": Messages}


def stop_of(step: Json) -> str:
    return step.get("stop", "tool" if step.get("calls") else "end")


class Script:
    """What one NAME answers, and what it was asked."""

    def __init__(self, data: Json) -> None:
        self.lock = threading.Lock()
        self.steps = list(data.get("steps", []))
        self.rules = data.get("rules", [])
        self.given: list[dict[str, int]] = [{} for _ in self.rules]  # a rule's reply for each request
        chaos = data.get("chaos", {})
        self.rate, self.kinds = chaos.get("rate", 0), chaos.get("kinds", CHAOS)
        self.random = random.Random(chaos.get("seed", 0))
        self.deck: list[str] = []
        self.log: list[Json] = []

    def next(self, api: str, body: Json) -> Json:
        with self.lock:
            if self.random.random() < self.rate:
                return self.fault_on(self.next_kind(), self.peek(api, body))
            return self.choose(api, body)

    def next_kind(self) -> str:
        if not self.deck:
            self.deck = self.random.sample(self.kinds, len(self.kinds))
        return self.deck.pop()

    @staticmethod
    def fault_on(kind: str, reply: Json) -> Json:
        if kind == "overloaded":
            return {"kind": kind, "fault": "status", "status": 529,
                    "body": {"error": {"type": "overloaded_error", "message": "busy"}}}
        if kind == "status":
            return {"fault": "status", "status": 429, "headers": {"retry-after-ms": "1"},
                    "body": {"error": {"type": "rate_limit_error", "message": "slow down"}}}
        return {**reply, "fault": kind}

    def peek(self, api: str, body: Json) -> Json:
        """A reply to break in the middle, without using one up."""
        if self.rules:
            return self.choose(api, body)
        return self.steps[0] if self.steps else {"text": "nothing"}

    def choose(self, api: str, body: Json) -> Json:
        if not self.rules:
            over = {"fault": "status", "status": 400, "body": {"error": "the script is over"}}
            return self.steps.pop(0) if self.steps else over
        text = APIS[api].newest(body)
        key = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        for rule, given in zip(self.rules, self.given):
            if re.search(rule["when"], text):
                index = given.setdefault(key, len(given))
                return rule["replies"][min(index, len(rule["replies"]) - 1)]
        return {"fault": "status", "status": 400, "body": {"error": "no rule fits: " + text[:200]}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def body(self) -> Json:
        return json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")

    def do_GET(self) -> None:
        name = self.path.strip("/").split("/")[0]
        self.answer(200, self.server.scripts[name].log if name in self.server.scripts else [])

    def do_POST(self) -> None:
        name, _, rest = self.path.strip("/").partition("/")
        api = rest.removeprefix("v1/")
        body = self.body()
        if not rest:
            self.server.scripts[name] = Script(body)
        if rest in ("", "log"):
            self.do_GET()
            return
        script = self.server.scripts.get(name)
        if script is None or api not in APIS:
            self.answer(404, {"error": {"message": "no such model", "type": "not_found_error"}})
            return
        if lost := APIS[api].unanswered(body):
            message = f"calls and results of tools do not match: {lost}"
            self.answer(400, {"error": {"message": message, "type": "invalid_request_error"}})
            return
        step = script.next(api, body)
        with script.lock:
            script.log.append({"api": api, "headers": dict(self.headers.items()), "body": body,
                               "did": step.get("kind", step.get("fault", "reply"))})
        time.sleep(step.get("delay_ms", 0) / 1000)
        try:
            self.act(step, APIS[api], body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def act(self, step: Json, api: Api, body: Json) -> None:
        fault = step.get("fault", "")
        if fault == "status":
            self.answer(step["status"], step.get("body", ""), step.get("headers", {}))
        elif fault == "close":
            self.hang_up()
        elif fault == "silent":
            time.sleep(STALL_SECONDS)
        elif fault == "html":
            self.answer(502, "<html><body>Bad gateway</body></html>", {"content-type": "text/html"})
        elif fault == "garbage":
            self.answer(200, "<html><body>Log in</body></html>", {"content-type": "text/html"})
        elif fault == "error_inside":
            self.answer(200, api.error("overloaded_error", "busy")[1])
        elif step.get("whole") or not body.get("stream"):
            self.answer(200, api.whole(step, body["model"]))
        else:
            self.stream(step, api, body["model"], fault)

    def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        headers = {"content-type": "application/json", **(headers or {})}
        for key, value in {**headers, "content-length": len(data)}.items():
            self.send_header(key, str(value))
        self.end_headers()
        self.wfile.write(data)

    def hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def send(self, text: str, pieces: int) -> None:
        data = text.encode()
        size = pieces or len(data)
        for begin in range(0, len(data), size):
            self.chunk(data[begin:begin + size])

    @staticmethod
    def text_of(name: str | None, data: Json | str) -> str:
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        return (f"event: {name}\n" if name else "") + f"data: {text}\n\n"

    def stream(self, step: Json, api: Api, model: str, fault: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if fault == "stall":
            time.sleep(STALL_SECONDS)
        events = list(api.events(step, model))
        if fault == "flood":
            while True:
                self.send(self.text_of(*events[1]), 0)
        pieces = step.get("pieces", 0)
        for event in events[:(len(events) + 1) // 2 if fault else None]:
            self.send(self.text_of(*event), pieces)
        if fault == "cut":
            self.hang_up()
            return
        if fault == "stall_mid":
            time.sleep(STALL_SECONDS)
        if fault == "bad_json":
            self.send('data: {"broken": \n\n', 0)
        if fault == "error_event":
            self.send(self.text_of(*api.error("overloaded_error", "busy")), 0)
        if step.get("hang"):
            time.sleep(STALL_SECONDS)
        self.wfile.write(b"0\r\n\r\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # many clients at once

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.scripts: dict[str, Script] = {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", help="a JSON file: the script named 'model'")
    arguments = parser.parse_args()
    server = Server(arguments.port)
    if arguments.script:
        with open(arguments.script, encoding="utf-8") as file:
            server.scripts["model"] = Script(json.load(file))
    print("port", server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
