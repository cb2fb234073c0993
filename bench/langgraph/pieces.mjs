// LangGraph's side of the scenarios with waiting runs: the same graphs, text and checks as ours in ../workload.go and ../review.go.
//
// It reads one JSON object per line from its input, and writes one for each:
//
//   {"saver": "postgres", "place": "connection string", "piece": "review", "text": "the draft"}   first; {"langgraph": "1.4.18"}
//   {"act": "start", "callers": 4, "millis": 1000, "least": 8}   for this duration, and at least this many; {"wall": ns, "cpu": ns, "micros": [latency, ...]}
//   {"act": "decide", "callers": 4}                              all waiting runs; the same
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { performance } from "node:perf_hooks";

import { Annotation, Command, END, START, StateGraph, interrupt } from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";

const verdict = "approve";

// Each workload is a graph, the data of its interrupt, and the check of its final state.
const pieces = { review, chain };

function review(text) {
  const State = Annotation.Root({ topic: Annotation, text: Annotation, verdict: Annotation, status: Annotation });
  const graph = new StateGraph(State)
    .addNode("draft", () => ({ text }))
    .addNode("human_review", (state) => ({ verdict: interrupt(state.text) }))
    .addNode("finalize", (state) => ({ status: state.verdict === verdict ? "published" : "dropped" }))
    .addEdge(START, "draft")
    .addEdge("draft", "human_review")
    .addEdge("human_review", "finalize")
    .addEdge("finalize", END);
  return { graph, shown: text, right: (state) => state.text === text && state.verdict === verdict && state.status === "published" };
}

// Ten steps: each adds a message, and the fifth interrupts.
const steps = 10;
const asks = 5;

function chain(text) {
  const size = text.length / steps;
  const messages = Array.from({ length: steps }, (_, i) => ({ role: "assistant", content: text.slice(i * size, (i + 1) * size) }));
  const State = Annotation.Root({
    topic: Annotation,
    messages: Annotation({ reducer: (left, right) => left.concat(right), default: () => [] }), // as in its documentation
    verdict: Annotation,
  });
  const graph = new StateGraph(State);
  let from = START;
  messages.forEach((message, i) => {
    const name = `n${i + 1}`;
    const add = () => ({ messages: [message] });
    graph.addNode(name, i + 1 === asks ? (state) => ({ verdict: interrupt(state.messages.at(-1).content), ...add() }) : add);
    graph.addEdge(from, name);
    from = name;
  });
  graph.addEdge(from, END);
  const right = (state) => state.topic === "tea" && state.verdict === verdict && JSON.stringify(state.messages) === JSON.stringify(messages);
  return { graph, shown: messages[asks - 2].content, right };
}

async function saver(kind, place) {
  if (kind !== "postgres") {
    throw new Error(`no saver is called ${kind}`);
  }
  const saver = PostgresSaver.fromConnString(place);
  await saver.setup();
  return saver;
}

let app;
let piece;
let runs = 0;
let waiting = [];
const thread = (key) => ({ configurable: { thread_id: key } });

async function start() {
  const key = `key-${++runs}`;
  const state = await app.invoke({ topic: "tea" }, thread(key));
  const asked = state.__interrupt__ ?? [];
  if (asked.length !== 1 || asked[0].value !== piece.shown) throw new Error(`${key} does not wait for its review`);
  waiting.push(key);
}

async function decide(key) {
  const state = await app.invoke(new Command({ resume: verdict }), thread(key));
  if (!piece.right(state)) throw new Error(`${key} has a wrong result`);
}

// crowd lets callers work until each has nothing more to do.
async function crowd(callers, next) {
  const micros = [];
  const cpu = process.cpuUsage();
  const begun = performance.now();
  await Promise.all(Array.from({ length: callers }, async () => {
    for (let work = next(); work; work = next()) {
      const from = performance.now();
      await work();
      micros.push(Math.round((performance.now() - from) * 1000));
    }
  }));
  const wall = performance.now() - begun;
  const used = process.cpuUsage(cpu);
  return { wall: Math.round(wall * 1e6), cpu: (used.user + used.system) * 1000, micros };
}

async function perform(order) {
  if (order.saver) {
    piece = pieces[order.piece](order.text);
    app = piece.graph.compile({ checkpointer: await saver(order.saver, order.place) });
    const installed = new URL("node_modules/@langchain/langgraph/package.json", import.meta.url);
    return { langgraph: JSON.parse(readFileSync(installed)).version };
  }
  switch (order.act) {
    case "start": {
      let left = order.least;
      const until = performance.now() + order.millis;
      return crowd(order.callers, () => (left-- > 0 || performance.now() < until ? start : undefined));
    }
    case "decide": {
      const keys = waiting.reverse();
      waiting = [];
      return crowd(order.callers, () => {
        const key = keys.pop();
        return key && (() => decide(key));
      });
    }
  }
  throw new Error(`unknown order ${JSON.stringify(order)}`);
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await perform(JSON.parse(line))));
}
process.exit(0); // pooled connections would keep the process alive
