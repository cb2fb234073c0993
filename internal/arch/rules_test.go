package arch

// module is the import path prefix of this module. The tables leave it out; "." is the root
// package, and a trailing "/..." covers a whole subtree. A package's own row applies, or else the
// row with the longest matching pattern.
const module = "github.com/fermata-go/fermata"

// Patterns for packages in the top layer.
const (
	anyPublic  = "<public>" // every package that a user of the module could import too
	anyPackage = "..."
	support    = "<support>" // packages below internal/ without a row of their own
)

// A layer lists the packages of this module that one package may import.
type layer struct {
	pkg string
	may []string
	why string
}

// layers lists the packages from the bottom up. A row may name only itself and rows before it:
// imports point down.
var layers = []layer{
	{"internal/...", may(support), "not importable by users; the root package uses it, so it cannot import the root package"},
	{".", may(support), "the vocabulary that every other package uses, so it depends on nothing else"},

	{"store", may(), "the port of checkpoints, which programs may implement, and the handle of an open store"},
	{"internal/store", may(".", "store", support), "the storage port; it does not know the engine, so any engine can use it"},
	{"internal/store/memory", may("internal/store", support), "an implementation depends on its port, not on another implementation"},
	{"internal/store/fixture", may("internal/store"), "test data for the stores, written through the port"},
	{"internal/store/proxytest", may(), "a network proxy for store tests; independent of the stores"},
	{"internal/store/storetest", may("internal/store", "internal/store/memory", support), "the suite uses a store only through the port and compares it with the reference"},
	{"internal/store/sqlite", may("internal/store", support), "an implementation depends on its port, not on another implementation"},
	{"internal/store/encrypted", may("internal/store", support), "the encryption decorator knows the port and no implementation"},
	{"internal/store/postgres", may("internal/store", support), "an implementation depends on its port, not on another implementation"},

	{"store/memory", may("store", "internal/store/memory"), "opens a store; all else is internal"},
	{"store/sqlite", may("store", "internal/store/sqlite"), "opens a store; all else is internal"},
	{"store/postgres", may("store", "internal/store/postgres"), "opens a store; all else is internal"},

	{"internal/drawing", may(".", support), "draws graphs of any engine, so it depends on none"},
	{"graph", may(".", "internal/store", "internal/drawing", support), "the engine saves through the store port and does not know the implementation"},
	{"gate", may(".", "graph", support), "approval nodes are ordinary nodes and use only what user nodes can use"},
	{"tool", may(".", "graph", support), "tools work without an agent and without a model"},
	{"internal/httptool", may(".", "tool", support), "tools that call HTTP endpoints, built like the tools of programs"},
	{"agent", may(".", "internal/store", "graph", "tool", support), "agents are built on graphs, so they hold and resume like graphs"},
	{"agent/...", may(".", "tool", "agent", support), "a model adapter depends on the agent port, not on the engine"},

	{"provider", may(".", "internal/store", "internal/drawing", support), "the port to engines that execute runs; our engine is one provider of several"},
	{"provider/providertest", may(".", "internal/store", "provider", support), "the suite uses a provider only through the port, like the executor"},
	{"provider/inproc", may(".", "internal/store", "graph", "gate", "tool", "agent", "provider", support), "the provider that runs our own engine"},
	{"internal/kinds", may("."), "the kinds of the root package that no other agent may ask"},
	{"provider/...", may(".", "internal/kinds", "internal/store", "provider", support), "an adapter implements its peer's protocol and does not depend on our engine"},

	{"internal/desk/hours", may(), "business hours depend only on clocks and calendars"},
	{"internal/desk/quorum", may(), "counting votes does not depend on what is decided"},
	{"internal/desk", may(".", "internal/desk/hours", "internal/desk/quorum", support), "pure rules: requests and decisions depend on neither storage nor execution"},
	{"internal/desk/people", may("internal/desk", "internal/desk/hours"), "settings of one person; they do not know requests of others"},
	{"internal/oncall", may(), "who is on call; it knows neither requests nor votes"},
	{"internal/desk/routefile", may("internal/desk", "internal/desk/hours", support), "parses route files; the rules do not depend on a file format"},
	{"internal/policy", may(".", "internal/store", support), "rules are evaluated without a run, so they can be simulated and explained"},
	{"internal/policy/...", may("internal/policy", support), "grants, replays and test cases use the rules, never the other way round"},
	{"policy", may(".", "internal/policy"), "loads a rule file; all else is internal"},
	{"internal/audit", may(".", "internal/store", support), "the audit log must be verifiable without the packages that it records"},
	{"internal/audit/reconcile", may("internal/audit"), "compares a log with the effects and runs; a log does not depend on it"},
	{"internal/audit/evidence", may(".", "internal/audit", support), "evidence is checked without the packages that make it"},
	{"internal/audit/audittest", may("internal/audit"), "the suite uses a log only through the port and compares it with the reference"},
	{"internal/simtest", may(".", "internal/store", "internal/audit", "internal/policy"), "what the simulators share needs a store and a log, and no executor"},
	{"internal/analytics", may(".", "internal/store", support), "read-only reports over the stored history"},
	{"dialog", may(".", support), "what agents and programs write to talk to end users; it depends on no agent"},
	{"internal/dialog/conversation", may("dialog", "internal/store", support), "talks to end users on behalf of any agent, so it depends on none"},

	{"api", may(".", "internal/drawing", support), "the types of the HTTP API, for the server and its clients"},
	{"client", may(".", "api", "internal/analytics", "dialog", support), "a client does not depend on the server, except for the types of reports and conversations"},
	{"internal/presentation", may(".", "api", "internal/desk", support), "words requests for every surface; only this package knows the kinds"},
	{"channel", may(".", "api", "client", "internal/desk", "internal/presentation", support), "the port to places where people see requests; below the executor, which sends through it"},
	{"internal/channelerror", may("channel", support), "what an error of a channel means, for those that send through it"},
	{"internal/post", may("channel", support), "HTTP calls of channels, with their errors"},
	{"internal/webhook", may("api", "channel", "internal/post", support), "sends events to subscriptions; the executor keeps those"},

	{"internal/executor/errs", may(support, "internal/store/encrypted"), "errors and limits that all parts share"},
	{"internal/executor/ids", may("."), "visible ids and digests"},
	{"internal/executor/retry", may("internal/store"), "how to repeat what lost a race"},
	{"internal/executor/progress", may("provider", "internal/store"), "progress of runs, in memory"},
	{"internal/executor/stats", may("internal/executor/ids", "internal/store"), "counts, in memory"},
	{"internal/executor/storeclock", may(support), "the clock of the store"},
	{"internal/executor/background", may(support, "provider", "internal/store"), "lifecycle of goroutines"},
	{"internal/executor/docs", may(".", "internal/analytics", "internal/desk", "internal/desk/people", "internal/executor/errs", support, "internal/store", "internal/store/encrypted"), "documents: below everything that stores"},
	{"internal/executor/providers", may("internal/executor/errs", "provider", "internal/store", "internal/store/encrypted"), "finds providers"},
	{"internal/executor/tracing", may(".", "internal/executor/docs", "internal/executor/ids", "internal/store"), "spans"},
	{"internal/executor/txn", may("internal/audit", "internal/executor/docs", "internal/store"), "the unit of work"},
	{"internal/executor/auditrec", may(".", "internal/audit", "internal/desk", "internal/executor/docs", "internal/executor/txn", support, "internal/policy/..."), "audit lines of changes"},
	{"internal/executor/history", may(".", "internal/desk", "internal/executor/docs", "internal/executor/ids", support, "internal/store"), "what a run has asked"},
	{"internal/executor/periodic", may("internal/audit", "internal/audit/reconcile", "internal/executor/background", "internal/executor/docs", "internal/executor/errs", "internal/store", "internal/store/encrypted"), "periodic jobs know nothing of runs"},
	{"internal/executor/govern", may(".", "internal/audit", "internal/desk", "internal/executor/auditrec", "internal/executor/docs", "internal/executor/errs", "internal/executor/history", "internal/executor/ids", "internal/executor/retry", "internal/executor/txn", support, "internal/policy", "internal/policy/...", "provider", "internal/store", "internal/store/encrypted"), "internal/policy"},
	{"internal/executor/requests", may(".", "internal/audit", "internal/desk", "internal/executor/auditrec", "internal/executor/background", "internal/executor/docs", "internal/executor/errs", "internal/executor/govern", "internal/executor/history", "internal/executor/providers", "internal/executor/retry", "internal/executor/storeclock", "internal/executor/txn", support, "internal/policy", "internal/policy/...", "provider", "internal/store", "internal/store/encrypted"), "requests, above policy"},
	{"internal/executor/outbox", may(".", "api", "internal/audit", "channel", "internal/channelerror", "internal/desk", "internal/desk/people", "internal/executor/auditrec", "internal/executor/background", "internal/executor/docs", "internal/executor/ids", "internal/executor/providers", "internal/executor/requests", "internal/executor/retry", "internal/executor/stats", "internal/executor/txn", support, "provider", "internal/store", "internal/store/encrypted"), "delivery"},
	{"internal/executor/expiry", may("internal/analytics", "internal/audit", "internal/desk", "internal/executor/auditrec", "internal/executor/background", "internal/executor/docs", "internal/executor/requests", "internal/executor/retry", "internal/executor/stats", "internal/executor/storeclock", "internal/executor/txn", "internal/store", "internal/store/encrypted"), "deadlines"},
	{"internal/executor/await", may(".", "internal/executor/background", "internal/executor/docs", "internal/executor/errs", "internal/store", "internal/store/encrypted"), "waits for outcomes"},
	{"internal/executor/view", may(".", "internal/audit", "internal/desk", "internal/executor/await", "internal/executor/background", "internal/executor/docs", "internal/executor/errs", "internal/executor/providers", "provider", "internal/store", "internal/store/encrypted"), "reads"},
	{"internal/executor/decide", may(".", "internal/audit", "internal/desk", "internal/executor/auditrec", "internal/executor/background", "internal/executor/docs", "internal/executor/errs", "internal/executor/govern", "internal/executor/history", "internal/executor/ids", "internal/executor/providers", "internal/executor/requests", "internal/executor/retry", "internal/executor/tracing", "internal/executor/txn", support, "provider", "internal/store", "internal/store/encrypted"), "decisions"},
	{"internal/executor/worker", may(".", "internal/audit", "internal/desk", "internal/executor/auditrec", "internal/executor/await", "internal/executor/background", "internal/executor/docs", "internal/executor/errs", "internal/executor/govern", "internal/executor/history", "internal/executor/ids", "internal/executor/progress", "internal/executor/providers", "internal/executor/requests", "internal/executor/retry", "internal/executor/stats", "internal/executor/storeclock", "internal/executor/tracing", "internal/executor/txn", support, "provider", "internal/store", "internal/store/encrypted"), "execution"},
	{"internal/executor/admin", may(".", "internal/analytics", "internal/audit", "internal/audit/evidence", "internal/audit/reconcile", "internal/desk", "internal/executor/auditrec", "internal/executor/background", "internal/executor/docs", "internal/executor/errs", "internal/executor/history", "internal/executor/periodic", "internal/executor/providers", "internal/executor/requests", "internal/executor/retry", "internal/executor/storeclock", "internal/executor/txn", "provider", "internal/store", "internal/store/encrypted"), "maintenance"},
	{"internal/executor/webhooks", may(".", "internal/audit", "channel", "internal/channelerror", "internal/webhook", "internal/desk", "internal/executor/auditrec", "internal/executor/background", "internal/executor/docs", "internal/executor/errs", "internal/executor/retry", support, "internal/store", "internal/store/encrypted"), "subscriptions to events"},
	{"internal/executor", may(".", "channel", "internal/webhook", "internal/store", "internal/store/encrypted", "provider", "internal/desk", "internal/desk/people", "internal/policy", "internal/policy/...", "internal/audit", "internal/audit/evidence", "internal/audit/reconcile", "internal/analytics", "internal/executor/errs", "internal/executor/ids", "internal/executor/retry", "internal/executor/progress", "internal/executor/stats", "internal/executor/storeclock", "internal/executor/background", "internal/executor/docs", "internal/executor/providers", "internal/executor/tracing", "internal/executor/txn", "internal/executor/auditrec", "internal/executor/history", "internal/executor/periodic", "internal/executor/govern", "internal/executor/requests", "internal/executor/outbox", "internal/executor/webhooks", "internal/executor/expiry", "internal/executor/await", "internal/executor/view", "internal/executor/decide", "internal/executor/worker", "internal/executor/admin", support), "the only writer of run status; it uses providers through the port"},

	{"dialog/classifier", may("agent", "dialog"), "judges replies with a model of package agent, so that package dialog depends on no model"},
	{"dialog/voice", may("dialog", support), "a device is a channel of a conversation"},
	{"internal/dialog/runs", may(".", "dialog", "internal/dialog/conversation", "internal/executor", "graph", "provider/inproc", "internal/store", support), "connects conversations to an executor, so that package dialog depends on no engine"},
	{"internal/embedded", may("channel", "dialog", "internal/dialog/conversation", "internal/executor", "internal/store", "internal/store/encrypted"), "the parts of a public executor, for the public server"},
	{"executor", may(".", "channel", "internal/webhook", "dialog", "internal/dialog/conversation", "internal/desk", "internal/dialog/runs", "internal/embedded", "internal/executor", "internal/executor/docs", "internal/store", "internal/store/encrypted", "internal/store/memory", "internal/policy", "provider", "provider/inproc", "store", support), "the facade of the executor: everything else of it is internal"},

	{"internal/slackfake", may(), "a Slack workspace for tests and the demo; it shares no code with the channel that it tests"},
	{"channel/webpush", may("channel", "internal/post", "internal/desk", support), "sends to browsers; the executor keeps their subscriptions"},
	{"internal/pushfake", may(), "a push service for tests; it shares no code with the channel that it tests"},
	{"channel/channeltest", may(".", "channel", "internal/channelerror", "internal/desk", "internal/executor", "provider/inproc", "internal/store", support), "the suite uses a channel only through the port, in front of a real executor"},
	{"channel/...", may(".", "api", "client", "channel", "channel/...", "internal/channelerror", "internal/desk", "internal/post", support), "a channel renders cards and acts for people through the API, so it cannot bypass the API"},
	{"internal/web/texts", may(support), "texts by language and key, for all pages"},
	{"internal/web/fields", may(support), "generated forms; they do not know what is asked"},
	{"internal/web/page", may("api", "client", "internal/web/texts", support), "the shell that all pages share; it knows no area"},
	{"internal/web/requests", may(".", "api", "client", "internal/presentation", "internal/policy", "internal/policy/...", "internal/web/fields", "internal/web/page", "internal/web/texts", support), "one request and its actions; other areas show requests with it"},
	{"internal/web/...", may(".", "internal/drawing", "internal/analytics", "api", "internal/audit", "internal/audit/evidence", "client", "internal/desk", "dialog", "internal/policy", "internal/policy/...", "internal/web/fields", "internal/web/page", "internal/web/requests", "internal/web/texts", support), "pages of one area: an API client, so they cannot bypass the API; of audit, desk, dialog and policy they use the types of API responses"},
	{"internal/web", may("internal/web/...", support), "the site: all areas, in front of the API"},
	{"mcp", may(".", "internal/store", "internal/executor", "internal/desk", support), "another protocol for the same executor"},
	{"internal/server/admission", may(support), "limits know accounts and connections, not the API"},
	{"internal/server/problems", may(".", "api", "internal/store", "provider", "internal/executor", "internal/desk", support), "error responses, for all parts of the server"},
	{"internal/server/stream", may(support), "server-sent events, whatever they are about"},
	{"internal/server/presence", may(support), "viewers of requests, for a short time"},
	{"internal/server/authn", may("internal/server/admission", "internal/server/problems", "api", "internal/store", "internal/executor", "internal/desk", "internal/audit", support), "identifies callers; knows nothing of runs and requests"},
	{"internal/server/endpoint", may("internal/server/authn", "internal/server/problems", "api", "internal/executor", "internal/desk", support), "what handlers share: descriptions of operations, the principal, pages"},
	{"internal/server/visibility", may(".", "internal/server/authn", "internal/server/problems", "api", "internal/store", "internal/executor", "internal/desk", support), "what a caller may see, for all operations that show requests"},
	{"internal/server/outcomes", may(".", "internal/server/endpoint", "internal/server/problems", "internal/server/visibility", "api", "internal/executor", support), "outcomes of runs as responses, for all operations that have one"},
	{"internal/server/...", may(".", "internal/presentation", "internal/server/authn", "internal/server/admission", "internal/server/endpoint", "internal/server/presence", "internal/server/problems", "internal/server/stream", "internal/server/visibility", "internal/server/outcomes", "api", "internal/store", "provider", "internal/executor", "internal/desk", "internal/desk/hours", "internal/desk/people", "internal/policy", "internal/policy/...", "internal/audit", "internal/audit/evidence", "internal/audit/reconcile", "internal/analytics", "channel", "internal/webhook", "channel/webpush", support), "handlers: they share the packages above and do not import each other"},
	{"internal/server/conversations", may("internal/server/authn", "internal/server/admission", "internal/server/endpoint", "internal/server/problems", "internal/server/stream", "api", "dialog", "internal/dialog/conversation", support), "conversations with end users; it knows neither runs nor requests"},
	{"internal/server", may(".", "internal/server/authn", "internal/server/...", "api", "internal/store", "provider", "internal/executor", "internal/desk", "internal/desk/hours", "internal/desk/people", "internal/policy", "internal/policy/...", "internal/audit", "internal/audit/evidence", "internal/audit/reconcile", "internal/analytics", "dialog", "internal/dialog/conversation", "internal/web", "mcp", "channel", "channel/...", "client", support), "connects the protocols to the executor; cmd chooses providers and stores"},

	{"internal/config", may(support), "settings are read and validated without the packages they configure"},
	{"internal/web/webtest", may(".", "api", "channel/webpush", "dialog", "internal/dialog/conversation", "internal/dialog/runs", "internal/store", "internal/store/encrypted", "internal/store/memory", "internal/executor", "provider", "provider/...", "internal/server", "internal/server/authn", support), "runs a server with the pages in tests"},
	{"internal/tui", may(".", "internal/drawing", "api", "client", support), "the terminal inbox is an API client"},
	{"internal/cli", may("api", "client", "internal/audit", "internal/config", "internal/executor", "internal/store", "internal/store/postgres", "internal/store/sqlite", support), "output, exit codes and flags that all commands share; exit codes need the errors of all parts"},
	{"internal/cli/clientcmd", may(".", "api", "client", "internal/analytics", "internal/cli", "internal/desk", "internal/drawing", "internal/policy/...", "internal/tui", "provider/...", support), "commands that call a server, so they open no store"},
	{"internal/serve", may(anyPackage), "builds a server from its configuration: the only package that opens every store, channel and provider"},
	{"internal/cli/operatorcmd", may("api", "channel", "channel/...", "client", "internal/audit", "internal/audit/evidence", "internal/cli", "internal/config", "internal/desk", "internal/executor", "internal/serve", "internal/server/authn", "internal/store", "internal/tui", support), "commands on the store and the configuration of a server"},
	{"internal/cli/rulescmd", may("api", "internal/cli", "internal/config", "internal/desk", "internal/desk/routefile", "internal/policy/...", "internal/serve", "internal/tui", "internal/policy", support), "commands on policy and route files"},
	{"internal/demo", may(anyPackage), "a server with samples and simulated agents"},
	{"server", may("channel", "channel/webpush", "executor", "internal/audit", "internal/embedded", "internal/server", "internal/server/authn", "internal/store", "internal/web"), "a complete server in one constructor"},
	{"app", may(anyPackage), "the program with all commands, importable so that users can add their own graphs"},

	{"examples/...", may(anyPublic, "examples/..."), "examples use only public packages, so that readers can copy them; they share only test code"},
	{"internal/sample", may(".", "examples/...", "graph", "provider", "provider/inproc"), "demo graphs, written like user code, and a provider that fails"},
	{"deploy/...", may(), "additional programs for container images, independent of Fermata"},
	{"cmd/...", may(anyPackage), "wires everything together; no package imports it"},
}

// A dependency is a third-party module that one package may import.
type dependency struct {
	pkg    string
	module string
	why    string
}

// dependencies lists every third-party module outside of tests. Importers of Fermata get them too.
var dependencies = []dependency{
	{"internal/...", "github.com/google/jsonschema-go", "the root package may import it, so the packages below it may too"},
	{"internal/seal", "github.com/klauspost/compress", "encrypted data cannot be compressed, so it is compressed before; the standard library has no zstd"},
	{".", "github.com/google/jsonschema-go", "a kind derives the schemas of its question and its answer from Go types"},
	{"graph", "github.com/google/jsonschema-go", "answers are validated against their kind before anything runs"},
	{"gate", "github.com/google/jsonschema-go", "a gate's question and answer are kinds"},
	{"tool", "github.com/google/jsonschema-go", "a tool passes the schema of its arguments to the model"},
	{"agent", "github.com/google/jsonschema-go", "an agent passes the schemas of its tools to the model"},
	{"internal/desk", "github.com/google/jsonschema-go", "the answer of a decision is validated against the schema of its kind"},

	{"internal/yamldoc", "go.yaml.in/yaml/v3", "the only reader of YAML; nodes have line numbers for error messages"},
	{"internal/suspend", "golang.org/x/sys", "system clocks that the standard library does not expose"},

	{"agent/openai", "github.com/openai/openai-go/v3", "the vendor's client implements the wire protocol"},
	{"agent/anthropic", "github.com/anthropics/anthropic-sdk-go", "the vendor's client implements the wire protocol"},

	{"internal/store/sqlite", "modernc.org/sqlite", "SQLite in pure Go: the binary stays static and builds without a C compiler"},
	{"internal/store/postgres", "github.com/jackc/pgx/v5", "PostgreSQL in pure Go, with pipelines, cancel requests and error codes that database/sql hides"},
	{"internal/server", "github.com/danielgtaylor/huma/v2", "OpenAPI 3.1 from the code, with validation errors per field"},
	{"internal/server/...", "github.com/danielgtaylor/huma/v2", "handlers register operations, errors become problems, and streams answer operations"},
	{"internal/server", "github.com/prometheus/client_golang", "metrics of other components are collectors"},
	{"internal/server/metrics", "github.com/prometheus/client_golang", "Prometheus metrics"},
	{"internal/server/authn", "golang.org/x/crypto", "argon2id hashes of passwords"},
	{"internal/server/authn", "golang.org/x/time", "limits how often an unknown key makes the server fetch the keys of the identity provider"},
	{"internal/server/admission", "golang.org/x/time", "token bucket rate limiter"},
	{"internal/server/authn", "github.com/coreos/go-oidc/v3", "widely used ID token verification"},
	{"internal/server/authn", "github.com/go-webauthn/webauthn", "verifies passkeys: attestation objects, signatures, counters"},
	{"internal/server/authn", "golang.org/x/oauth2", "the authorization code flow with PKCE"},
	{"internal/cli", "github.com/alecthomas/kong", "finds the selected command"},
	{"app", "github.com/alecthomas/kong", "a command line as structs: help texts, environment and completion from one place"},
	{"internal/serve", "go.opentelemetry.io/otel", "traces are sent to a collector if the settings name one; this is the API"},
	{"internal/serve", "go.opentelemetry.io/otel/trace", "the same"},
	{"internal/serve", "go.opentelemetry.io/otel/sdk", "collects, samples and batches spans"},
	{"internal/serve", "go.opentelemetry.io/otel/exporters/otlp/otlptrace", "encodes spans for OTLP"},
	{"internal/serve", "go.opentelemetry.io/proto/otlp", "the messages of OTLP; the generated service, which needs gRPC, is not imported"},
	{"internal/serve", "google.golang.org/protobuf", "encodes and decodes the messages of OTLP"},
	{"channel/slack", "github.com/slack-go/slack", "the wire types of Slack, verification of signatures and Socket Mode"},
	{"channel/email", "github.com/wneessen/go-mail", "SMTP with TLS, and MIME messages"},
	{"internal/pushfake", "github.com/golang-jwt/jwt/v5", "verifies tokens as a push service does, independently of the channel"},
	{"internal/oncall", "github.com/arran4/golang-ical", "iCalendar files"},
	{"internal/oncall", "github.com/teambition/rrule-go", "repeated events of calendars"},
	{"internal/slackfake", "github.com/gorilla/websocket", "the server side of Socket Mode; the client side in slack-go uses it too"},
	{"internal/tui", "charm.land/bubbletea/v2", "event loop, key input and rendering of a terminal program"},
	{"internal/tui", "charm.land/lipgloss/v2", "terminal colours and character widths"},
	{"internal/tui", "github.com/charmbracelet/x/ansi", "removes styles from the text whose hash is recorded"},
	{"internal/tui", "github.com/charmbracelet/x/term", "distinguishes a terminal from a pipe"},
	{"internal/executor/tracing", "go.opentelemetry.io/otel", "spans for runs; only the API, which does nothing by itself"},
	{"internal/executor/tracing", "go.opentelemetry.io/otel/trace", "the same"},
	{"internal/executor/worker", "go.opentelemetry.io/otel/trace", "hands spans from the start of an execution to its end"},
	{"internal/executor", "go.opentelemetry.io/otel/trace", "Config.Tracer"},
	{"internal/server", "go.opentelemetry.io/otel", "HTTP requests join the traces of their callers"},
	{"internal/server", "go.opentelemetry.io/otel/trace", "the same"},
	{"internal/policy", "cel.dev/cel-go", "policies are written in CEL"},
	{"internal/audit", "golang.org/x/mod", "checkpoints of the chain are signed notes and tile logs (sumdb/note, sumdb/tlog)"},

	{"internal/safehtml", "golang.org/x/text", "NFKC, to compare names that look the same (unicode/norm)"},

	{"examples/dataagent", "modernc.org/sqlite", "its agent uses a real database; the driver of the store is linked anyway"},

	{"internal/oidctest", "github.com/golang-jwt/jwt/v5", "test support: signs tokens with another library than the one that verifies them"},
	{"internal/pgtest", "github.com/jackc/pgx/v5", "test support: creates a database for each test"},
	{"internal/store/storetest", "pgregory.net/rapid", "test support: the port's rules are checked as properties"},
	{"internal/store/storetest", "github.com/google/go-cmp", "test support: prints differences"},
}

// A testSupport row names a non-test package that may import testing.
type testSupport struct {
	pkg string
	why string
}

// testSupports lists the exceptions to the rule that code linked into a program must neither
// register test flags nor use *testing.T.
var testSupports = []testSupport{
	{"agent/internal/modeltest", "a model service that fails the test after too many calls"},
	{"internal/golden", "compares with golden files and defines the -update flag"},
	{"internal/oidctest", "an OpenID provider per test that fails the test if a client violates the protocol"},
	{"internal/pgtest", "a PostgreSQL database per test; fails the test if there is no PostgreSQL"},
	{"internal/testtier", "selects the tests and counts of a tier"},
	{"internal/testserver", "runs a test in a process that crashes and checks that its servers are gone"},
	{"internal/store/fixture", "writes test data for the stores"},
	{"internal/store/proxytest", "a network proxy that ends with the test"},
	{"internal/store/storetest", "the store conformance suite, called from the tests of each store"},
	{"internal/audit/audittest", "the audit log conformance suite, called from the tests of each log"},
	{"channel/channeltest", "the channel conformance suite, called from its own tests with every channel"},
	{"provider/providertest", "the provider conformance suite, called from the tests of each provider"},
	{"internal/claudetest", "finds the CLI, and a model that fails the test for invalid calls"},
	{"internal/web/webtest", "a server with the pages, and browsers of its users"},
	{"examples/internal/exampletest", "runs the agent examples as real processes; only their tests call it"},
}

func may(patterns ...string) []string { return patterns }
