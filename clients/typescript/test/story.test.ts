// Tests a review against a real server, with the package as npm would install it. FERMATA_URL and FERMATA_TOKEN select the server.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, happened, isOutcome, newId, Problem, type NeedsInput, type Outcome, type ProblemCode } from "@fermata-go/client";

const url = process.env["FERMATA_URL"] ?? assert.fail("FERMATA_URL is missing");
const token = process.env["FERMATA_TOKEN"] ?? assert.fail("FERMATA_TOKEN is missing");
const review = "inproc:content-review";

/** What a review shows, as far as the story goes. */
interface Shown {
  reason: string;
  draft: { content: string };
}

function waiting(outcome: Outcome): NeedsInput {
  if (outcome.status !== "needs_input") {
    assert.fail(`it should wait: ${JSON.stringify(outcome)}`);
  }
  return outcome;
}

function draftOf(outcome: Outcome): string {
  return (waiting(outcome).interrupts[0]?.data as Shown).draft.content;
}

async function refused(code: ProblemCode, call: Promise<unknown>): Promise<Problem> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    assert.equal(error.code, code);
    assert.ok(error.is(code));
    return error;
  }
  return assert.fail(`it should be refused with ${code}`);
}

test("a review: start, revise, approve, completed", async () => {
  const fermata = new Client({ url, token });
  const stateKey = `story-${newId()}`;

  const started = await fermata.start(review, { topic: "tea" }, { stateKey });
  assert.equal(draftOf(started), "Five things about tea.");

  const revised = await fermata.resume(stateKey, { action: "revise", feedback: "a picture" });
  assert.equal(draftOf(revised), "Five things about tea. Now with a picture.");

  const view = await fermata.run(stateKey);
  assert.equal(view.status, "waiting");
  const open = view.requests?.find((r) => r.state === "pending") ?? assert.fail("nothing is open");
  const done = await fermata.decide(open, { action: "approve" });
  assert.equal(done.status, "completed");
  assert.equal(done.status === "completed" && done.content, "Five things about tea. Now with a picture.");
  assert.deepEqual(await fermata.wait(stateKey), done);
});

test("some of several answers, by their ids", async () => {
  const fermata = new Client({ url, token });
  const stateKey = `targets-${newId()}`;
  const id = waiting(await fermata.start(review, { topic: "rain" }, { stateKey })).interrupts[0]?.id ?? assert.fail("no id");
  const done = await fermata.resumeTargets(stateKey, { [id]: { action: "reject" } });
  assert.equal(done.status, "completed");
});

test("an error response is a problem with a code", async () => {
  const fermata = new Client({ url, token });
  const stateKey = `problem-${newId()}`;
  await refused("not_found", fermata.run(stateKey));
  await refused("unknown_graph", fermata.start("inproc:nothing", {}));

  const started = waiting(await fermata.start(review, { topic: "tea" }, { stateKey }));
  const bad = await refused("bad_answer", fermata.resume(stateKey, { action: "perhaps" }));
  assert.equal(bad.status, 400);
  assert.ok(bad.fields.length > 0, "it says what is wrong");

  const request = await fermata.request(started.interrupts[0]?.id ?? "");
  await refused("digest_mismatch", fermata.decide(request, { action: "approve" }, { shown: "something else" }));
  assert.equal((await fermata.request(request.id)).state, "pending", "a refused answer changes nothing");

  await fermata.decide(request, { action: "approve" });
  const late = await refused("already_decided", fermata.decide(request, { action: "reject" }));
  assert.equal(late.decided?.by, "dana");

  await refused("unauthenticated", new Client({ url, token: "wrong" }).graphs());
});

test("an empty id is rejected, and nothing is sent", async () => {
  const sent: typeof fetch = async (input) => assert.fail(`sent ${String(input)}`);
  const fermata = new Client({ url, token, fetch: sent });
  for (const id of ["", ".", ".."]) {
    for (const call of [
      () => fermata.cancel(id),
      () => fermata.run(id),
      () => fermata.request(id),
      () => fermata.decide(id, { action: "approve" }),
      () => fermata.reply(id, 1, "because"),
      () => fermata.wait(id),
    ]) {
      await assert.rejects(call(), RangeError);
    }
  }
});

test("a lost response is retried with the same id, and applied once", async () => {
  const stateKey = `retry-${newId()}`;
  const bodies: string[] = [];
  let lose = 2;
  const lossy: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (init?.method === "POST" && lose > 0) {
      lose--;
      bodies.push(String(init.body));
      if (lose === 1) {
        throw new TypeError("fetch failed"); // the server has applied it, and its response is lost
      }
      return new Response("<html>bad gateway</html>", { status: 502 });
    }
    bodies.push(String(init?.body));
    return response;
  };
  const fermata = new Client({ url, token, fetch: lossy });
  await new Client({ url, token }).start(review, { topic: "rice" }, { stateKey });
  const revised = await fermata.resume(stateKey, { action: "revise", feedback: "salt" });
  assert.equal(draftOf(revised), "Five things about rice. Now with salt.", "one answer, one round");
  assert.equal(bodies.length, 3);
  assert.deepEqual(new Set(bodies).size, 1, "every try is the same");
});

test("a truncated problem response is retried, because it has no code", async () => {
  let calls = 0;
  const cutting: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (++calls > 1) {
      return response;
    }
    const half = new Uint8Array(await response.arrayBuffer()).slice(0, 20);
    const body = new ReadableStream({
      pull(control) {
        control.enqueue(half);
        control.error(new TypeError("terminated"));
      },
    });
    return new Response(body, { status: response.status, headers: response.headers });
  };
  await refused("not_found", new Client({ url, token, fetch: cutting }).run(`nothing-${newId()}`));
  assert.equal(calls, 2);
});

test("it gives up after the last attempt, and throws its error", async () => {
  let tries = 0;
  const down: typeof fetch = async () => {
    tries++;
    return new Response(JSON.stringify({ code: "unavailable", title: "Unknown or not done", status: 503 }), { status: 503 });
  };
  const problem = await refused("unavailable", new Client({ url, token, tries: 3, fetch: down }).graphs());
  assert.equal(problem.status, 503);
  assert.equal(tries, 3);
});

// A connection is cut after each of the messages, once: also between the waiting event and its outcome.
for (let cut = 1; cut <= 7; cut++) {
  test(`events resume after a lost connection, after ${cut} messages`, async () => {
    const stateKey = `events-${newId()}`;
    const sent: string[] = [];
    const cutting: typeof fetch = async (input, init) => {
      const response = await fetch(input, init);
      sent.push(new Headers(init?.headers).get("Last-Event-ID") ?? "none");
      return sent.length > 1 || !response.body ? response : new Response(response.body.pipeThrough(cutAfter(cut)), response);
    };
    const people = new Client({ url, token });
    await people.start(review, { topic: "soup" }, { stateKey });

    const ids: string[] = [];
    const types: string[] = [];
    let last: Outcome | undefined;
    for await (const event of new Client({ url, token, fetch: cutting }).events(stateKey)) {
      if (happened(event)) {
        ids.push(event.id);
        types.push(event.type);
      } else if (isOutcome(event)) {
        last = event.outcome;
        if (last.status === "needs_input") {
          await people.resume(stateKey, { action: "approve" }, { resumeId: `approve-${stateKey}` });
        }
      }
    }
    assert.equal(last?.status, "completed");
    assert.equal(new Set(ids).size, 5, "each event once");
    assert.deepEqual(types, ["created", "asked", "waiting", "decided", "completed"]);
    assert.equal(sent[0], "none");
    if (cut < 7) {
      assert.equal(sent.length, 2, "one connection was cut");
    }
    if (cut === 2) {
      assert.equal(sent[1], ids[1], "it asks for what it has not seen, and for nothing else");
    }
  });
}

test("events of an earlier run with the same state key do not hide those of the new one", async () => {
  const stateKey = `again-${newId()}`;
  const fermata = new Client({ url, token });
  const first = async (after?: string) => {
    for await (const event of fermata.events(stateKey, after === undefined ? {} : { after })) {
      if (happened(event)) {
        return event;
      }
    }
    throw new Error("nothing happened");
  };
  await fermata.start(review, { topic: "soup" }, { stateKey });
  const before = await first();
  await fermata.start(review, { topic: "bread" }, { stateKey, supersede: true });
  const created = await first(before.id);
  assert.equal(created.type, "created");
  assert.notEqual(created.id, before.id);
  assert.equal((await first(created.id)).type, "asked");
});

/** Cuts a stream in the middle of the message behind the first so many. Steps and tokens do not count. */
function cutAfter(messages: number): TransformStream<Uint8Array, Uint8Array> {
  let left = messages;
  return new TransformStream({
    transform(chunk, control) {
      const text = new TextDecoder().decode(chunk);
      for (const part of text.split(/(?<=\n\n)/)) {
        if (/^(:|event: (step|token))/.test(part)) {
          continue;
        }
        if (left-- === 0) {
          control.enqueue(new TextEncoder().encode(part.slice(0, part.length / 2)));
          control.terminate();
          return;
        }
        control.enqueue(new TextEncoder().encode(part));
      }
    },
  });
}

test("broken idle connections are reopened", async () => {
  const stateKey = `idle-${newId()}`;
  await new Client({ url, token }).start(review, { topic: "bread" }, { stateKey });
  let breaks = 4; // a proxy cuts idle connections
  const breaking: typeof fetch = async (input, init) => {
    if (breaks === 0) {
      return fetch(input, init);
    }
    breaks--;
    const silent = new ReadableStream<Uint8Array>({
      start(control) {
        control.enqueue(new TextEncoder().encode(": hello\n\n"));
      },
      pull(control) {
        control.error(new TypeError("terminated"));
      },
    });
    return new Response(silent, { headers: { "Content-Type": "text/event-stream" } });
  };
  const outcome = await new Client({ url, token, tries: 2, fetch: breaking }).wait(stateKey);
  assert.equal(outcome.status, "needs_input");
  assert.equal(breaks, 0);
});

test("a stream without heartbeats is reopened", async () => {
  const stateKey = `silent-${newId()}`;
  await new Client({ url, token }).start(review, { topic: "tea" }, { stateKey });
  let tries = 0;
  const still: typeof fetch = async (input, init) => {
    tries++;
    if (tries === 1) {
      return new Promise<Response>(() => {}); // not even a response
    }
    if (tries === 2) {
      const beginning = new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode(": hello\n\n")) });
      return new Response(beginning, { headers: { "Content-Type": "text/event-stream" } });
    }
    return fetch(input, init);
  };
  const outcome = await new Client({ url, token, idleTimeout: 2000, fetch: still }).wait(stateKey);
  assert.equal(outcome.status, "needs_input");
  assert.ok(tries >= 3, `${tries} tries`);
});

test("an outage after the first connection is waited for", async () => {
  const stateKey = `away-${newId()}`;
  await new Client({ url, token }).start(review, { topic: "bread" }, { stateKey });
  let calls = 0;
  const away: typeof fetch = async (input, init) => {
    switch (++calls) {
      case 1:
        return new Response(": hello\n\n", { headers: { "Content-Type": "text/event-stream" } });
      case 5:
        return fetch(input, init);
      default:
        throw new TypeError("fetch failed");
    }
  };
  assert.equal((await new Client({ url, token, tries: 2, fetch: away }).wait(stateKey)).status, "needs_input");
  assert.equal(calls, 5);

  const never: typeof fetch = async () => {
    throw new TypeError("fetch failed");
  };
  await assert.rejects(new Client({ url, token, tries: 2, fetch: never }).wait(stateKey), /fetch failed/);
});

for (const [name, page] of Object.entries({
  "a page": () => new Response("<html>Sign in first</html>", { headers: { "Content-Type": "text/html" } }),
  "nothing at all": () => new Response(""),
})) {
  test(`a response of an intermediary is an error: ${name}`, async () => {
    const between = new Client({ url, token, fetch: async () => page(), tries: 2 });
    const refusedByNobody = async (call: Promise<unknown>) =>
      assert.rejects(call, (error) => error instanceof Problem && error.is("http") && error.status === 200);
    await refusedByNobody(between.cancel("another-run"));
    await refusedByNobody(between.start(review, { topic: "tea" }));
    await refusedByNobody(between.wait("another-run", { signal: AbortSignal.timeout(60_000) })); // and not retried forever
  });
}

test("a wait lasts until the run ends, and can be aborted", async () => {
  const fermata = new Client({ url, token });
  const stateKey = `wait-${newId()}`;
  const pending = await fermata.start(review, { topic: "bread" }, { stateKey, wait: 0 });
  assert.ok(pending.status === "pending" || pending.status === "needs_input", pending.status);
  assert.equal((await fermata.wait(stateKey)).status, "needs_input");

  const over = fermata.wait(stateKey, { over: true });
  const given = new AbortController();
  const enough = fermata.wait(stateKey, { over: true, signal: given.signal });
  given.abort(new Error("enough"));
  await assert.rejects(enough, /enough/);

  await fermata.cancel(stateKey);
  const outcome = await over;
  assert.equal(outcome.status === "error" && outcome.error, "cancelled");
});

test("an external agent creates a request, replies to a clarification request, and polls the answer", async () => {
  const fermata = new Client({ url, token });
  const stateKey = `refund-${newId()}`;
  const asked = waiting(await fermata.createRequest({ stateKey, kind: "refund", data: { order: 17 } }));
  const twin = { kind: "refund", data: { order: stateKey } };
  const first = waiting(await fermata.createRequest(twin));
  assert.equal(waiting(await fermata.createRequest(twin)).runId, first.runId);
  assert.notEqual(waiting(await fermata.createRequest({ ...twin, allowDuplicate: true })).runId, first.runId);
  const id = asked.interrupts[0]?.id ?? assert.fail("nothing is open");

  const called = await fetch(`${url}/api/v1/requests/${id}/clarify`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ text: "was it damaged?" }),
  });
  assert.equal(called.status, 200);
  const replied = await fermata.reply(id, 1, "yes");
  assert.equal(replied.activity?.clarifications?.[0]?.reply?.text, "yes");
  await fermata.decide(replied, { action: "pay" });

  const answers = [];
  for (let cursor = ""; ; ) {
    const page = await fermata.answers({ cursor, limit: 10 });
    answers.push(...page.items.filter((answered) => answered.stateKey === stateKey));
    if (page.next === cursor) {
      break;
    }
    cursor = page.next;
  }
  assert.equal(answers.length, 1);
  assert.deepEqual(answers[0]?.answer, { action: "pay" });
});

test("lists", async () => {
  const fermata = new Client({ url, token });
  const graphs = await fermata.graphs();
  assert.ok(graphs.items.some((g) => g.id === review && !g.drawing));
  assert.ok((await fermata.graph(review)).drawing?.nodes?.every((n) => !n.waiting));
  const [waits] = (await fermata.runs({ status: ["waiting"], graphId: review, limit: 1 })).items;
  assert.ok(waits);
  assert.deepEqual((await fermata.runGraph(waits.stateKey)).drawing?.nodes?.filter((n) => n.waiting).map((n) => n.id), ["human_review"]);
  const runs = await fermata.runs({ status: ["waiting", "completed"], limit: 2 });
  assert.equal(runs.items.length, 2);
  assert.ok(runs.next);
  const open = await fermata.requests({ kind: "content-review" });
  assert.ok(open.items.every((r) => r.kind === "content-review" && r.state === "pending"));
});

// Code that the compiler must reject; test/tsconfig.json fails otherwise.
export function neverCalled(fermata: Client, outcome: Outcome): void {
  // @ts-expect-error no such status
  void (outcome.status === "done");
  // @ts-expect-error an outcome has content only if it is completed
  void outcome.content;
  // @ts-expect-error no such filter
  void fermata.requests({ state: "open" });
  // @ts-expect-error no such code
  void new Problem({ status: 400, code: "bad_request", title: "" }).is("bad_reqest");
}

test("events through a proxy with other line ends and arbitrary chunks", async () => {
  const stateKey = `story-${newId()}`;
  await new Client({ url, token }).start(review, { topic: "tea" }, { stateKey });
  const through: typeof fetch = async (to, init) => {
    const response = await fetch(to, init);
    if (response.headers.get("Content-Type") !== "text/event-stream") {
      return response;
    }
    const bytes = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, out) {
        for (const byte of chunk) {
          if (byte === 10) {
            out.enqueue(Uint8Array.of(13));
          }
          out.enqueue(Uint8Array.of(byte));
        }
      },
    });
    return new Response(response.body?.pipeThrough(bytes) ?? null, { headers: response.headers });
  };
  const outcome = await new Client({ url, token, fetch: through }).wait(stateKey, { signal: AbortSignal.timeout(60_000) });
  assert.equal(outcome.status, "needs_input");
});

test("a server that closes streams early is not polled in a loop", async () => {
  let asked = 0;
  const short: typeof fetch = async () => {
    asked++;
    return new Response(": hello\n\n", { headers: { "Content-Type": "text/event-stream" } });
  };
  await assert.rejects(new Client({ url, token, fetch: short }).wait("any", { signal: AbortSignal.timeout(3_000) }));
  assert.ok(asked > 1 && asked < 10, `${asked} times`);
});
