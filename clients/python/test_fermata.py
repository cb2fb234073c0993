"""Tests the client against real servers. client_test.go starts them, and the proxy in front of them."""

import asyncio
import contextlib
import faulthandler
import json
import logging
import os
import pathlib
import subprocess
import sys
import threading
import traceback
import unittest
import urllib.request
from datetime import datetime, timedelta, timezone
from typing import Dict, List, Literal, Optional
from unittest import mock

import fermata

faulthandler.dump_traceback_later(240, exit=True)  # instead of a test that hangs

URL, TOKEN, PERSON = os.environ["FERMATA_URL"], os.environ["FERMATA_TOKEN"], os.environ["PERSON_TOKEN"]
DEMO_URL, DEMO_TOKEN = os.environ["DEMO_URL"], os.environ["DEMO_TOKEN"]
DIRECTORY = pathlib.Path(os.environ["DIRECTORY"])
REVIEW = "inproc:content-review"


def control(url, *faults):
    """Set the faults of the next calls, and return the calls since the last time."""
    request = urllib.request.Request(url + "/control", data=json.dumps(faults).encode(), method="POST")
    with urllib.request.urlopen(request) as response:
        return json.load(response) or []


def fault(method, path, do, after=0):
    return {"Method": method, "Path": path, "Do": do, "After": after}


def draft(outcome):
    return outcome["interrupts"][0]["data"]["draft"]["content"]


class Case(unittest.TestCase):
    def setUp(self):
        self.agent = fermata.Client(URL, TOKEN)
        self.person = fermata.Client(URL, PERSON)
        self.demo = fermata.Client(DEMO_URL, DEMO_TOKEN)
        control(URL)
        control(DEMO_URL)
        for request in self.person.requests()["items"]:  # of a test that failed
            self.agent.cancel(request["stateKey"])

    def key(self):
        return f"{self.id().rsplit('.', 1)[-1]}-{fermata.new_id()[:8]}"

    @contextlib.contextmanager
    def deciding(self, *answers, meanwhile=lambda: None):
        """Answer the next requests of the agent, in order, as the person."""
        failed, over = [], threading.Event()

        def decide():
            try:
                for answer in answers:
                    found = []
                    while not found and not over.wait(0.01):
                        found = self.person.requests(order="newest", limit=1)["items"]
                    if not found:
                        failed.append("nothing to decide")
                        return
                    meanwhile()
                    self.person.decide(found[0], answer(found[0]) if callable(answer) else answer)
            except BaseException:
                failed.append(traceback.format_exc())

        thread = threading.Thread(target=decide)
        thread.start()
        try:
            yield thread
        finally:
            over.set()
            thread.join()
        self.assertEqual(failed, [])


class Runs(Case):
    def test_review_start_revise_approve(self):
        key = self.key()
        self.assertEqual(draft(self.demo.start(REVIEW, {"topic": "tea"}, state_key=key)), "Five things about tea.")
        revised = self.demo.resume(key, {"action": "revise", "feedback": "a picture"})
        self.assertEqual(draft(revised), "Five things about tea. Now with a picture.")
        view = self.demo.run(key)
        open_ = next(r for r in view["requests"] if r["state"] == "pending")
        self.assertEqual(self.demo.reveal(open_["id"])["id"], open_["id"])
        done = self.demo.decide(open_, {"action": "approve"})
        self.assertEqual((done["status"], done["content"]), ("completed", "Five things about tea. Now with a picture."))
        self.assertEqual(self.demo.wait(key), done)

    def test_resume_targets_lists_and_graphs(self):
        key = self.key()
        id = self.demo.start(REVIEW, {"topic": "rain"}, state_key=key)["interrupts"][0]["id"]
        self.assertIn(key, [r["stateKey"] for r in self.demo.runs(status=["waiting"], graph_id=REVIEW, limit=5)["items"]])
        self.assertIn(REVIEW, [g["id"] for g in self.demo.graphs()["items"]])
        self.assertTrue(self.demo.graph(REVIEW)["drawing"]["nodes"])
        self.assertEqual([n["id"] for n in self.demo.run_graph(key)["drawing"]["nodes"] if n.get("waiting")], ["human_review"])
        self.assertEqual(self.demo.resume_targets(key, {id: {"action": "reject"}})["status"], "completed")

    def test_wait_until_over_and_with_a_timeout(self):
        key = self.key()
        pending = self.demo.start(REVIEW, {"topic": "bread"}, state_key=key, wait=0)
        self.assertIn(pending["status"], ("pending", "needs_input"))
        self.assertEqual(self.demo.wait(key)["status"], "needs_input")
        with self.assertRaises(fermata.WaitTimeout) as raised:
            self.demo.wait(key, over=True, timeout=0.3)
        self.assertEqual(raised.exception.state_key, key)
        ended = []
        thread = threading.Thread(target=lambda: ended.append(self.demo.wait(key, over=True)))
        thread.start()
        self.demo.cancel(key)
        thread.join()
        self.assertEqual(ended[0]["error"], "cancelled")

    def test_problems_have_a_class_for_each_reason(self):
        key = self.key()
        with self.assertRaises(fermata.NotFound):
            self.demo.run(key)
        with self.assertRaises(fermata.NotFound) as raised:
            self.demo.start("inproc:nothing", {})
        self.assertEqual(raised.exception.code, "unknown_graph")
        id = self.demo.start(REVIEW, {"topic": "tea"}, state_key=key)["interrupts"][0]["id"]
        with self.assertRaises(fermata.BadAnswer) as raised:
            self.demo.resume(key, {"action": "perhaps"})
        self.assertTrue(raised.exception.fields)
        with self.assertRaises(fermata.StateKeyInUse):
            self.demo.start(REVIEW, {"topic": "milk"}, state_key=key)
        request = self.demo.request(id)
        with self.assertRaises(fermata.RequestChanged):
            self.demo.decide(request, {"action": "approve"}, shown="something else")
        self.demo.decide(request, {"action": "approve"})
        with self.assertRaises(fermata.AlreadyDecided) as raised:
            self.demo.decide(request, {"action": "reject"})
        self.assertEqual(raised.exception.decided["by"], "dana")
        with self.assertRaises(fermata.Unauthenticated):
            fermata.Client(DEMO_URL, "wrong").graphs()
        with self.assertRaises(fermata.Forbidden):
            self.person.create_request("refund", {"order": 1})

    def test_invalid_id_sends_nothing(self):
        control(DEMO_URL)
        for id in ("", ".", ".."):
            for call in (self.demo.cancel, self.demo.run, self.demo.request, self.demo.wait, self.demo.reveal):
                with self.assertRaises(ValueError):
                    call(id)
        self.assertEqual(control(DEMO_URL), [])


class BadConnections(Case):
    def test_lost_response_is_repeated_with_the_same_ids_and_applied_once(self):
        key = self.key()
        self.demo.start(REVIEW, {"topic": "rice"}, state_key=key)
        control(DEMO_URL, *(fault("POST", "/ai/chat", do) for do in ("lose", "bad gateway", "truncate", "down")))
        revised = self.demo.resume(key, {"action": "revise", "feedback": "salt"})
        self.assertEqual(draft(revised), "Five things about rice. Now with salt.", "one answer, one round")
        bodies = [call["Body"] for call in control(DEMO_URL)]
        self.assertEqual((len(bodies), len(set(bodies))), (5, 1))

    def test_lost_response_of_each_call_that_changes_something(self):
        key = self.key()
        control(URL, fault("POST", "/requests", "lose"))
        id = self.agent.create_request("refund", {"order": key}, state_key=key)["interrupts"][0]["id"]
        self.clarify(id, "was it damaged?")
        control(URL, fault("POST", "/reply", "lose"))
        self.assertEqual(self.agent.reply(id, 1, "yes")["activity"]["clarifications"][0]["reply"]["text"], "yes")
        calls = [call["Headers"]["Idempotency-Key"] for call in control(URL, fault("POST", "/decision", "lose"))]
        self.assertEqual((len(calls), len(set(map(tuple, calls)))), (2, 1))
        self.person.decide(self.person.request(id), {"action": "pay"})
        self.assertEqual(self.agent.ask("refund", {"order": key}, state_key=key).value, {"action": "pay"})
        other = self.agent.create_request("refund", {"order": key + "b"})
        control(URL, fault("POST", "/requests", "lose"))
        self.assertEqual(self.agent.create_request("refund", {"order": key + "b"})["runId"], other["runId"])
        control(URL, fault("POST", "/requests", "lose"))
        duplicate = self.agent.create_request("refund", {"order": key + "b"}, allow_duplicate=True)
        self.assertNotEqual(duplicate["runId"], other["runId"])
        behalf = self.agent.create_request("refund", {"order": key + "b"}, requester="bob", environment="staging", facts={"score": 1})
        self.assertEqual(self.person.request(behalf["interrupts"][0]["id"])["activity"]["statedRequester"], "bob")
        self.agent.cancel(behalf["stateKey"])
        for outcome in (other, duplicate):
            control(URL, fault("POST", "/cancel", "lose"))
            self.agent.cancel(outcome["stateKey"])
        seen = [r for r in self.agent.runs(limit=50)["items"] if r["runId"] in (other["runId"], duplicate["runId"])]
        self.assertEqual([r["status"] for r in seen], ["cancelled", "cancelled"])

    def clarify(self, id, text):
        headers = {"Authorization": "Bearer " + PERSON, "Content-Type": "application/json"}
        request = urllib.request.Request(f"{URL}/api/v1/requests/{id}/clarify", data=json.dumps({"text": text}).encode(), headers=headers)
        urllib.request.urlopen(request).close()

    def test_truncated_problem_is_repeated_because_it_has_no_code(self):
        control(URL, fault("GET", "/nothing", "truncate"))
        with self.assertRaises(fermata.NotFound):
            self.agent.run("nothing")
        self.assertEqual(len(control(URL)), 2)

    def test_page_of_an_intermediary_is_an_error_and_not_repeated(self):
        for do in ("page", "empty", "redirect"):
            for method, path, call in (("POST", "/cancel", lambda: self.agent.cancel("x")), ("GET", "/events", lambda: self.agent.wait("x")),
                                       ("POST", "/requests", lambda: self.agent.create_request("a", 1))):
                control(URL, fault(method, path, do))
                with self.assertRaises(fermata.Problem) as raised:
                    call()
                self.assertEqual(raised.exception.code, "http")
                self.assertEqual(len(control(URL)), 1)
        control(URL, fault("GET", "/graphs", "no json"))
        with self.assertRaises(fermata.Problem):
            self.agent.graphs()

    def test_gives_up_after_the_last_attempt(self):
        control(URL, *[fault("GET", "/graphs", "down")] * 9)
        with self.assertRaises(fermata.ConnectionFailed):
            fermata.Client(URL, TOKEN, tries=3).graphs()
        self.assertEqual(len(control(URL, *[fault("GET", "/graphs", "bad gateway")] * 9)), 3)
        with self.assertRaises(fermata.Problem) as raised:
            fermata.Client(URL, TOKEN, tries=2).graphs()
        self.assertEqual((raised.exception.status, raised.exception.again), (502, True))

    def test_http_proxy_of_the_environment_is_used(self):
        with mock.patch.dict(os.environ, {"http_proxy": DEMO_URL, "no_proxy": ""}):
            client = fermata.Client("http://fermata.example:1", DEMO_TOKEN)
        control(DEMO_URL)
        self.assertTrue(client.graphs()["items"])
        self.assertEqual(len(control(DEMO_URL)), 1)


class Events(Case):
    def follow(self, client, key):
        """Follow the run to its end, and answer its request."""
        ids, types = [], []
        for event in client.events(key):
            if "id" in event:
                ids.append(event["id"])
                types.append(event["type"])
            elif event["type"] == "outcome":
                last = event["outcome"]
                if last["status"] == "needs_input":
                    self.demo.resume(key, {"action": "approve"}, resume_id="approve-" + key)
        self.assertEqual(last["status"], "completed")
        self.assertEqual(types, ["created", "asked", "waiting", "decided", "completed"])
        self.assertEqual(len(set(ids)), 5, "each event once")
        return ids

    def connections(self):
        return [call["Headers"].get("Last-Event-Id", ["none"])[0] for call in control(DEMO_URL) if call["Path"].endswith("/events")]

    def test_stream_resumes_after_each_message(self):
        for cut in range(7):
            key = self.key()
            self.demo.start(REVIEW, {"topic": "soup"}, state_key=key)
            control(DEMO_URL, fault("GET", "/events", "cut", cut))
            ids = self.follow(self.demo, key)
            sent = self.connections()
            self.assertEqual(len(sent), 2, f"cut after {cut}")
            self.assertEqual(sent[0], "none")
            if cut in (1, 2):
                self.assertEqual(sent[1], ids[cut - 1], "it asks for what it has not seen, and for nothing else")

    def test_stream_with_other_line_ends_and_single_bytes(self):
        key = self.key()
        self.demo.start(REVIEW, {"topic": "tea"}, state_key=key)
        control(DEMO_URL, fault("GET", "/events", "crlf"))
        self.follow(self.demo, key)

    def test_silent_and_broken_streams_are_reopened(self):
        key = self.key()
        self.demo.start(REVIEW, {"topic": "tea"}, state_key=key)
        control(DEMO_URL, *(fault("GET", "/events", do) for do in ("hello", "silent", "down", "down", "bad gateway")))
        impatient = fermata.Client(DEMO_URL, DEMO_TOKEN, tries=2, idle_timeout=2)
        self.assertEqual(impatient.wait(key)["status"], "needs_input")
        self.assertGreaterEqual(len(self.connections()), 6)
        control(DEMO_URL, *[fault("GET", "/events", "down")] * 9)
        with self.assertRaises(fermata.ConnectionFailed):
            impatient.wait(key)

    def test_early_end_of_streams_does_not_cause_a_busy_loop(self):
        control(DEMO_URL, *[fault("GET", "/events", "hello")] * 100)
        with self.assertRaises(fermata.WaitTimeout):
            self.demo.wait("any", timeout=2)
        self.assertIn(len(self.connections()), range(2, 10))

    def test_continues_after_an_event(self):
        key = self.key()
        self.demo.start(REVIEW, {"topic": "tea"}, state_key=key)
        first = next(e for e in self.demo.events(key) if "id" in e)
        second = next(e for e in self.demo.events(key, after=first["id"]) if "id" in e)
        self.assertEqual((first["type"], second["type"]), ("created", "asked"))


class Asking(Case):
    def test_ask_waits_for_the_answer(self):
        key = self.key()
        schema = {"type": "object", "required": ["action"], "properties": {"action": {"enum": ["pay", "refuse"]}}}
        with self.deciding({"action": "pay"}):
            answer = self.agent.ask("refund", {"order": key}, answer_schema=schema, state_key=key)
        self.assertEqual((answer.value, answer.by, answer.kind, answer.state_key), ({"action": "pay"}, "ann", "refund", key))
        again = self.agent.ask("refund", {"order": key}, answer_schema=schema, state_key=key)
        self.assertEqual(again, answer, "the same call returns the same answer")
        found, cursor = [], ""
        while True:
            page = self.agent.answers(cursor=cursor, limit=10)
            found += [item for item in page["items"] if item["stateKey"] == key]
            if page["next"] == cursor:
                break
            cursor = page["next"]
        self.assertEqual([item["answer"] for item in found], [{"action": "pay"}])

    def test_ask_without_an_answer_raises(self):
        key = self.key()
        with self.assertRaises(fermata.WaitTimeout):
            self.agent.ask("refund", {"order": key}, state_key=key, wait_timeout=0.2)
        self.agent.cancel(key)
        with self.assertRaises(fermata.Withdrawn):
            self.agent.ask("refund", {"order": key}, state_key=key)
        with self.assertRaises(fermata.Expired):
            self.agent.ask("refund", {"order": key + "2"}, timeout=1)

    def test_requests_can_be_searched(self):
        key = self.key()
        id = self.agent.create_request("leave", {"days": 3}, state_key=key)["interrupts"][0]["id"]
        found = self.person.requests(state="pending", kind="leave", search="kind:leave", order="newest", limit=3)["items"]
        self.assertIn(id, [r["id"] for r in found])
        self.agent.cancel(key)


class Tools(Case):
    def tool(self, **options):
        calls = []

        def refund(order: str, cents: int, note: str = "<&>\u2028é") -> dict:
            calls.append((order, cents, note))
            return {"paid": cents}

        return self.agent.approve_tool(**options)(refund), calls

    def receipt(self, key=None):
        key = key or self.agent.runs(limit=1)["items"][0]["stateKey"]
        return self.agent.run(key).get("receipt")

    def test_approved_tool_runs_once_and_sends_the_receipt(self):
        refund, calls = self.tool(summary=lambda order, cents: f"Refund {cents} cents")
        seen = []
        with self.deciding(lambda request: seen.append(request) or {"verb": "approve"}, meanwhile=lambda: self.assertEqual(calls, [])):
            self.assertEqual(refund(self.key(), cents=80), {"paid": 80})
        self.assertEqual(len(calls), 1)
        self.assertEqual(seen[0]["data"]["summary"], "Refund 80 cents")
        receipt = self.receipt()
        self.assertEqual((receipt["outcome"], receipt["result"], receipt["digest"]), ("done", {"paid": 80}, seen[0]["data"]["digest"]))

    def test_edited_arguments_are_used(self):
        refund, calls = self.tool()
        key = self.key()
        with self.deciding({"verb": "approve", "args": {"order": key, "cents": 70, "note": "a <b> \u2028"}}):
            refund(key, 80)
        self.assertEqual(calls, [(key, 70, "a <b> \u2028")])
        self.assertEqual(self.receipt()["digest"], fermata.digest("refund", {"cents": 70, "note": "a <b> \u2028", "order": key}))

    def test_edit_of_a_fixed_tool_is_refused(self):
        refund, calls = self.tool(editable=False)
        key = self.key()
        def decision(request):
            with self.assertRaises(fermata.Problem):
                self.person.decide(request, {"verb": "approve", "args": {"order": key, "cents": 1, "note": ""}})
            return {"verb": "reject", "reason": "too much"}

        with self.deciding(decision), self.assertRaises(fermata.Rejected) as raised:
            refund(key, 80)
        self.assertEqual((raised.exception.reason, raised.exception.by, calls), ("too much", "ann", []))
        self.assertIsNone(self.receipt())

    def test_rules_allow_and_deny_without_a_person(self):
        ran = []
        read_file = self.agent.approve_tool(lambda path: ran.append(path) or "text", action="read_file")
        self.assertEqual(read_file("a"), "text")
        wipe = self.agent.approve_tool(lambda path: ran.append(path), action="wipe")
        with self.assertRaises(fermata.Rejected) as raised:
            wipe("a")
        self.assertEqual((raised.exception.code, ran), ("denied", ["a"]))

    def test_failed_tool_sends_a_receipt_without_its_error_text(self):
        @self.agent.approve_tool(action="read_file")
        def read_file(path):
            raise KeyError("password 1234")

        with self.assertRaises(KeyError):
            read_file("a")
        receipt = self.receipt()
        self.assertEqual((receipt["outcome"], receipt["result"]), ("failed", {"error": "KeyError"}))

    def test_conditions_are_checked_before_the_tool_runs(self):
        def until(seconds):
            at = datetime.now(timezone.utc) + timedelta(seconds=seconds)
            return {"verb": "approve", "conditions": {"until": at.isoformat().replace("+00:00", "Z")}}

        refund, calls = self.tool()
        with self.deciding(until(3600)):
            refund(self.key(), 1)
        self.assertEqual(len(calls), 1)
        with self.deciding(until(3600)), mock.patch.object(fermata, "_time", lambda text: datetime.now(timezone.utc) - timedelta(seconds=1)):
            with self.assertRaises(fermata.ConditionsNotMet):
                refund(self.key(), 2)
        self.assertEqual((len(calls), self.receipt()["outcome"]), (1, "not_done"))
        only_if = {"verb": "approve", "conditions": {"onlyIf": "args.cents <= 500"}}
        with self.deciding(only_if), self.assertRaises(fermata.ConditionsNotMet):
            refund(self.key(), 3)
        checked = []
        refund, calls = self.tool(only_if=lambda expression, args: checked.append(expression) or args["cents"] <= 500)
        with self.deciding(only_if):
            refund(self.key(), 4)
        self.assertEqual((checked, len(calls)), (["args.cents <= 500"], 1))

    def test_other_arguments_than_the_approved_ones_do_not_run(self):
        refund, calls = self.tool()
        answer = fermata.Answer(value={"verb": "approve"}, kind="approval", approved_digest="0" * 64)
        with mock.patch.object(self.agent, "_answer", lambda *a: answer), self.assertRaises(fermata.ConditionsNotMet):
            refund(self.key(), 5)
        self.assertEqual(calls, [])
        self.cancel_newest()

    def cancel_newest(self):
        self.agent.cancel(self.agent.runs(limit=1)["items"][0]["stateKey"])

    def test_state_key_continues_after_a_crash_and_runs_the_tool_once(self):
        with self.assertRaises(ValueError):
            self.tool(state_key=lambda order, cents: order)
        refund, calls = self.tool(state_key=lambda order, cents: order, journal=DIRECTORY / "journal", wait_timeout=0.2)
        key = self.key()
        with self.assertRaises(fermata.WaitTimeout):
            refund(key, 80)  # as if the process had ended here
        with self.assertRaises(fermata.StateKeyInUse):
            refund(key, 81)
        with self.deciding({"verb": "approve"}) as decided:
            decided.join()
        control(URL, fault("POST", "/receipt", "lose"))
        self.assertEqual(refund(key, 80), {"paid": 80})
        self.assertEqual(refund(key, 80), {"paid": 80}, "the recorded result")
        self.assertEqual(len(calls), 1)
        with self.assertRaises(fermata.WaitTimeout):
            refund(key, 81)  # other arguments after the end are another request
        with self.deciding({"verb": "approve"}) as decided:
            decided.join()
        self.assertEqual(refund(key, 81), {"paid": 81}, "the first call does not make it doubtful")

    def test_crash_inside_the_tool_is_in_doubt_until_there_is_a_receipt(self):
        key, marker = self.key(), DIRECTORY / "ran"
        program = f"""
import fermata, os
@fermata.Client().approve_tool(action="read_file", state_key=lambda path: path, journal={str(DIRECTORY / "journal")!r})
def read(path):
    with open({str(marker)!r}, "a") as file:
        file.write("x")
    if os.environ.get("CRASH"):
        os._exit(9)
    return "text"
try:
    print(read({key!r}))
except fermata.InDoubt:
    print("in doubt")
"""

        def run(**env):
            done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **env}, capture_output=True, text=True)
            return done.returncode, done.stdout.strip()

        self.assertEqual(run(CRASH="1"), (9, ""))
        self.assertEqual(run(), (0, "in doubt"))
        approved = self.agent.run(key)["outcome"]["output"]["approvedDigest"]
        self.agent.send_receipt(key, approved, "done", "text, as found out")
        self.assertEqual(run(), (0, "text, as found out"))
        self.assertEqual(marker.read_text(), "x", "it ran once")

    def test_idempotent_tool_runs_again_after_a_crash(self):
        key, calls = self.key(), []

        def read(path):
            calls.append(path)
            return "text"

        tool = self.agent.approve_tool(read, action="read_file", state_key=lambda path: path, idempotent=True)
        with mock.patch.object(fermata._Tool, "finished", lambda *a: None):
            tool(key)  # as if the process had ended before the receipt
        self.assertEqual(tool(key), "text")
        self.assertEqual(tool(key), "text")
        self.assertEqual(calls, [key, key])

    def test_lost_receipt_does_not_hide_the_result(self):
        read = self.agent.approve_tool(lambda path: "text", action="read_file")
        control(URL, *[fault("POST", "/receipt", "down")] * 9)
        with self.assertLogs("fermata", logging.WARNING) as logs:
            self.assertEqual(read("a"), "text")
        self.assertIn("receipt not sent", logs.output[0])

    def test_async_tool(self):
        calls = []

        @self.agent.approve_tool(action="refund")
        async def refund(order: str, cents: int) -> int:
            await asyncio.sleep(0)
            calls.append(order)
            return cents

        async def two():
            return await asyncio.gather(refund(self.key(), 1), refund(self.key() + "b", 2))

        with self.deciding({"verb": "approve"}, {"verb": "approve"}):
            self.assertEqual(asyncio.run(two()), [1, 2])
        self.assertEqual((len(calls), self.receipt()["outcome"]), (2, "done"))

        async def cancelled():
            task = asyncio.create_task(refund(self.key(), 3))
            while not self.person.requests()["items"]:
                await asyncio.sleep(0.05)
            task.cancel()
            self.cancel_newest()  # the waiting thread ends with the request
            await task

        with self.assertRaises(asyncio.CancelledError):
            asyncio.run(cancelled())
        self.assertEqual(len(calls), 2)

    def test_schema_of_the_arguments_from_type_hints(self):
        def tool(a: int, b: List[str], c: Optional[float] = None, d: Literal["x", "y"] = "x", e: Dict[str, bool] = {}, f=1):
            pass

        schema = fermata._args_schema(tool)
        self.assertEqual((schema["required"], schema["additionalProperties"]), (["a", "b"], False))
        self.assertEqual(schema["properties"], {
            "a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "string"}}, "c": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "d": {"enum": ["x", "y"]}, "e": {"type": "object", "additionalProperties": {"type": "boolean"}}, "f": {},
        })

    def test_digest_is_that_of_the_server_for_every_spelling(self):
        for args in ({"b": 1, "a": [True, None, 1.5, 1e-7, 1e22, -0.0]}, {"é\u2028<": "\x00\x1f\x7f\u2029&😀\\\""}, {"big": 2**70, "": {}}):
            outcome = self.agent.create_request("approval", {"action": "read_file", "args": args}, allow_duplicate=True)
            self.assertEqual(fermata.digest("read_file", args), outcome["output"]["approvedDigest"], args)


class Secrets(Case):
    def test_secrets_are_not_in_reprs_and_errors(self):
        secret = "fermata_" + "s3cret" * 4
        client = fermata.Client(URL, secret)
        texts = [repr(client), str(vars(client)), repr(fermata.Answer(value=secret, kind="x"))]
        for call in (client.graphs, lambda: fermata.Client("http://127.0.0.1:1", secret, tries=1).graphs(), lambda: fermata.Client(URL, secret + "\n"),
                     lambda: fermata.Client("http://ann:" + secret + "@x", "t"), lambda: fermata.Client("ftp://" + secret)):
            with self.assertRaises((fermata.FermataError, ValueError)) as raised:
                call()
            texts.append("".join(traceback.format_exception(type(raised.exception), raised.exception, raised.exception.__traceback__)))
        for text in texts:
            self.assertNotIn(secret, text)
