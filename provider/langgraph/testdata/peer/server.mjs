// Starts LangGraph's development server (@langchain/langgraph-api) in this process, on a free port of 127.0.0.1:
//
//   node server.mjs FOLDER [durable [PORT]]
//
// FOLDER gets its files. It prints {"url": "http://127.0.0.1:PORT"} when it is ready, and ends with its input.
//
// The server polls in intervals of up to a second, which only makes tests slow; here these timers are twenty times as fast.
// With "durable" it has two properties of a production server that the development server lacks: its files are written with
// each operation, and a run that was in progress when the process was killed is queued again.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder, mode, port = "0"] = process.argv.slice(2);
process.env.LANGSMITH_TRACING = process.env.LANGCHAIN_TRACING_V2 = "false";
process.env.LOG_LEVEL = "error";

const setSlowTimeout = globalThis.setTimeout;
globalThis.setTimeout = (call, delay, ...args) => setSlowTimeout(call, delay > 20 && delay <= 1000 ? delay / 20 : delay, ...args);

const api = new URL("./node_modules/@langchain/langgraph-api/dist/", import.meta.url);
if (mode === "durable") {
  const { FileSystemPersistence, serialize } = await import(new URL("storage/persist.mjs", api));
  FileSystemPersistence.prototype.schedulePersist = function () {
    const text = serialize(this.data);
    if (text === this.written) return;
    writeFileSync(`${this.filepath}.new`, text);
    renameSync(`${this.filepath}.new`, this.filepath);
    this.written = text;
  };
  const file = join(folder, ".langgraph_api", ".langgraphjs_ops.json");
  if (existsSync(file)) {
    const ops = JSON.parse(readFileSync(file, "utf8"));
    for (const run of Object.values(ops.json.runs)) if (run.status === "running") run.status = "pending";
    writeFileSync(file, JSON.stringify(ops));
  }
}
mkdirSync(folder, { recursive: true });

const graphs = new URL("./graphs.mjs", import.meta.url).pathname;
const names = Object.keys(await import(graphs));
const { startServer } = await import(new URL("server.mjs", api));
const { host } = await startServer({
  port: Number(port), host: "127.0.0.1", nWorkers: 4, cwd: folder, graphs: Object.fromEntries(names.map((name) => [name, `${graphs}:${name}`])),
});
console.log(JSON.stringify({ url: `http://${host}` }));

process.stdin.on("end", () => process.exit(0)).resume();
