// The graphs of the tests of provider/langgraph. Their work is done by the test: each piece is a POST to
// configurable.work_url, or to WORK_URL in the environment.
import { Annotation, END, START, Send, StateGraph, interrupt } from "@langchain/langgraph";
import { z } from "zod";

const last = (initial) => Annotation({ reducer: (_, next) => next, default: () => initial });
const list = () => Annotation({ reducer: (all, more) => all.concat(more), default: () => [] });

async function work(config, name) {
  const url = config.configurable.work_url ?? process.env.WORK_URL;
  if (!url) return;
  const response = await fetch(`${url}/${name}`, { method: "POST" });
  if (!response.ok) throw new Error(`the work ${name} was refused`);
}

// ── the content review of seed 000: draft → review → revise … → publish
const Verdict = z.strictObject({ action: z.enum(["approve", "revise", "reject"]), feedback: z.string().optional(), editedContent: z.string().optional() });

const Review = Annotation.Root({ topic: last(""), draft: last(""), revision: last(1), verdict: last(null), published: last(null) });

export const content_review = new StateGraph(Review)
  .addNode("write_draft", async (state, config) => {
    await work(config, "draft");
    return { draft: `A text about ${state.topic}` };
  })
  .addNode("human_review", (state) => ({
    verdict: interrupt(
      {
        reason: "Content ready for review",
        draft: { id: `draft-${state.revision}`, content: state.draft },
        warnings: [],
        suggestedActions: [
          { id: "approve", label: "Approve & Publish", action: "approve", isPrimary: true },
          { id: "revise", label: "Request Changes", action: "revise" },
          { id: "reject", label: "Reject", action: "reject" },
        ],
      },
      { responseSchema: Verdict },
    ),
  }))
  .addNode("revise", (state) => ({ draft: state.verdict.editedContent ?? `${state.draft}, ${state.verdict.feedback ?? "revised"}`, revision: state.revision + 1 }))
  .addNode("finalize", async (state, config) => {
    await work(config, "publish");
    return { published: state.draft };
  })
  .addEdge(START, "write_draft")
  .addEdge("write_draft", "human_review")
  .addConditionalEdges("human_review", (state) => state.verdict.action, { approve: "finalize", revise: "revise", reject: END })
  .addEdge("revise", "human_review")
  .addEdge("finalize", END)
  .compile();

// ── two questions at once
const Pair = Annotation.Root({ topic: last(""), done: list() });
const ask = (name) => async (state, config) => {
  const verdict = interrupt({ question: `${name}?` }, { responseSchema: z.strictObject({ action: z.enum(["approve"]) }) });
  await work(config, name);
  return { done: [`${name}: ${verdict.action}`] };
};

export const pair = new StateGraph(Pair)
  .addNode("ask_left", ask("left"))
  .addNode("ask_right", ask("right"))
  .addNode("join", () => ({}))
  .addEdge(START, "ask_left")
  .addEdge(START, "ask_right")
  .addEdge(["ask_left", "ask_right"], "join")
  .addEdge("join", END)
  .compile();

// ── one model turn with three tool calls, as LangChain's human-in-the-loop middleware asks about them
const Calls = Annotation.Root({ calls: last([]), results: list() });

async function execute(call, decision, config) {
  switch (decision.type) {
    case "approve":
    case "edit": {
      const { name, args } = decision.type === "edit" ? decision.edited_action : call;
      await work(config, `${name}-${args.n}`);
      return { name, args, by: decision.type };
    }
    case "reject":
      return { name: call.name, rejected: decision.message ?? "" };
    default:
      throw new Error(`decision ${decision.type} is not allowed`);
  }
}

export const tools = new StateGraph(Calls)
  .addNode("approve_tools", async (state, config) => {
    const { decisions } = interrupt({
      action_requests: state.calls.map((call) => ({ name: call.name, args: call.args, description: `Call ${call.name}` })),
      review_configs: [...new Set(state.calls.map((call) => call.name))].map((name) => ({ action_name: name, allowed_decisions: ["approve", "edit", "reject"] })),
    });
    if (decisions.length !== state.calls.length) throw new Error("the number of decisions does not match");
    const results = [];
    for (const [i, decision] of decisions.entries()) results.push(await execute(state.calls[i], decision, config));
    return { results };
  })
  .addEdge(START, "approve_tools")
  .addEdge("approve_tools", END)
  .compile();

// ── three parallel calls, each an interrupt of its own in the form of Agent Inbox
const Inbox = Annotation.Root({ calls: last([]), call: last(null), results: list() });

export const inbox = new StateGraph(Inbox)
  .addNode("call_tool", async ({ call }, config) => {
    const [answer] = interrupt([
      {
        action_request: { action: call.name, args: call.args },
        config: { allow_accept: true, allow_edit: true, allow_respond: true, allow_ignore: true },
        description: `Call **${call.name}**`,
      },
    ]);
    if (answer.type === "accept" || answer.type === "edit") {
      const { action, args } = answer.type === "edit" ? answer.args : { action: call.name, args: call.args };
      await work(config, `${action}-${args.n}`);
      return { results: [{ name: action, args, by: answer.type }] };
    }
    return { results: [{ name: call.name, by: answer.type, text: answer.args }] };
  })
  .addConditionalEdges(START, (state) => state.calls.map((call) => new Send("call_tool", { call })), ["call_tool"])
  .addEdge("call_tool", END)
  .compile();

// ── a question in a subgraph, and one that is answered with a text only
const Letter = Annotation.Root({ to: last(""), text: last("") });
const letter = new StateGraph(Letter)
  .addNode("write", (state) => ({
    text: interrupt({ action_request: { action: "write_letter", args: { to: state.to } }, config: { allow_accept: false, allow_edit: false, allow_respond: true, allow_ignore: false } })[0].args,
  }))
  .addEdge(START, "write")
  .addEdge("write", END)
  .compile();

export const parent = new StateGraph(Letter).addNode("letter", letter).addEdge(START, "letter").addEdge("letter", END).compile();

// ── a node with two questions: LangGraph gives both the same id. The answers are booleans, also false.
const Twice = Annotation.Root({ answers: last([]) });
export const twice = new StateGraph(Twice)
  .addNode("ask", () => ({ answers: [interrupt("Sure?"), interrupt("Sure?")] }))
  .addEdge(START, "ask")
  .addEdge("ask", END)
  .compile();

// ── a static breakpoint
const Stop = Annotation.Root({ amount: last(0), sent: last(0), approval: last(""), approver: last("") });
export const breakpoint = new StateGraph(Stop)
  .addNode("prepare", (state) => ({ amount: state.amount + 1 }))
  .addNode("send", async (state, config) => {
    await work(config, "send");
    return { sent: state.amount };
  })
  .addEdge(START, "prepare")
  .addEdge("prepare", "send")
  .addEdge("send", END)
  .compile({ interruptBefore: ["send"] });

// ── a node that fails as often as the test says
const Fails = Annotation.Root({ topic: last(""), ok: last(false) });
export const fails = new StateGraph(Fails)
  .addNode("work", async (state, config) => {
    await work(config, "fail");
    return { ok: true };
  })
  .addEdge(START, "work")
  .addEdge("work", END)
  .compile();

// ── a question, a result and an error with the thread id
const Leaky = Annotation.Root({ topic: last(""), note: last("") });
export const leaky = new StateGraph(Leaky)
  .addNode("ask", (state, config) => {
    const thread = config.configurable.thread_id;
    const { go } = interrupt({ question: `Continue ${thread}?`, thread }, { responseSchema: z.strictObject({ go: z.boolean() }) });
    if (!go) throw new Error(`thread ${thread} failed`);
    return { note: `${thread} continues` };
  })
  .addEdge(START, "ask")
  .addEdge("ask", END)
  .compile();
