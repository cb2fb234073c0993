package arch

// module is the import path prefix of this module. The tables leave it out; "." is the root
// package, and a trailing "/..." covers a whole subtree. A package's own row applies, or else the
// row with the longest matching pattern.
const module = "github.com/fermata-go/fermata"

// Patterns for packages in the top layer.
const (
	anyPublic  = "<public>" // every package that a user of the module could import too
	anyPackage = "..."
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
	{"internal/...", may("internal/..."), "not importable by users; the root package uses it, so it cannot import the root package"},
	{".", may("internal/..."), "the vocabulary that every other package uses, so it depends on nothing else"},

	{"store", may(".", "internal/..."), "the storage port; it does not know the engine, so any engine can use it"},
	{"store/memory", may("store", "internal/..."), "an implementation depends on its port, not on another implementation"},
	{"store/internal/fixture", may("store"), "test data for the stores, written through the port"},
	{"store/internal/proxytest", may(), "a network proxy for store tests; independent of the stores"},
	{"store/storetest", may("store", "store/memory", "internal/..."), "the suite uses a store only through the port and compares it with the reference"},
	{"store/sqlite", may("store", "internal/..."), "an implementation depends on its port, not on another implementation"},
	{"store/encrypted", may("store", "internal/..."), "the encryption decorator knows the port and no implementation"},
	{"store/postgres", may("store", "internal/..."), "an implementation depends on its port, not on another implementation"},
	{"store/redis", may("store", "internal/..."), "an implementation depends on its port, not on another implementation"},

	{"drawing", may(".", "internal/..."), "draws graphs of any engine, so it depends on none"},
	{"graph", may(".", "store", "drawing", "internal/..."), "the engine saves through the store port and does not know the implementation"},
	{"gate", may(".", "graph", "internal/..."), "approval nodes are ordinary nodes and use only what user nodes can use"},
	{"tool", may(".", "graph", "internal/..."), "tools work without an agent and without a model"},
	{"agent", may(".", "store", "graph", "tool", "internal/..."), "agents are built on graphs, so they hold and resume like graphs"},
	{"agent/...", may(".", "tool", "agent", "internal/..."), "a model adapter depends on the agent port, not on the engine"},

	{"provider", may(".", "store", "drawing", "internal/..."), "the port to engines that execute runs; our engine is one provider of several"},
	{"provider/providertest", may(".", "store", "provider"), "the suite uses a provider only through the port, like the executor"},
	{"provider/inproc", may(".", "store", "graph", "gate", "tool", "agent", "provider", "internal/..."), "the provider that runs our own engine"},
	{"provider/...", may(".", "store", "provider", "internal/..."), "an adapter implements its peer's protocol and does not depend on our engine"},

	{"desk/hours", may(), "business hours depend only on clocks and calendars"},
	{"desk/quorum", may(), "counting votes does not depend on what is decided"},
	{"desk", may(".", "desk/hours", "desk/quorum", "internal/..."), "pure rules: requests and decisions depend on neither storage nor execution"},
	{"desk/people", may("desk", "desk/hours"), "settings of one person; they do not know requests of others"},
	{"oncall", may(), "who is on call; it knows neither requests nor votes"},
	{"desk/routefile", may("desk", "desk/hours", "internal/..."), "parses route files; the rules do not depend on a file format"},
	{"policy/internal/...", may("internal/..."), "parsing of rule files, separate from evaluation"},
	{"policy", may(".", "policy/internal/...", "store", "internal/..."), "rules are evaluated without a run, so they can be simulated and explained"},
	{"policy/...", may("policy", "policy/internal/...", "internal/..."), "grants, replays and test cases use the rules, never the other way round"},
	{"audit", may(".", "store", "internal/..."), "the audit log must be verifiable without the packages that it records"},
	{"audit/audittest", may("audit"), "the suite uses a log only through the port and compares it with the reference"},
	{"analytics", may(".", "store", "internal/..."), "read-only reports over the stored history"},
	{"dialog", may(".", "store", "internal/..."), "talks to end users on behalf of any agent, so it depends on none"},

	{"api", may(".", "drawing", "internal/..."), "the types of the HTTP API, for the server and its clients"},
	{"client", may(".", "api", "analytics", "dialog", "internal/..."), "a client does not depend on the server, except for the types of reports and conversations"},
	{"channel", may(".", "api", "client", "desk", "internal/..."), "the port to places where people see requests; below the executor, which sends through it"},
	{"channel/internal/post", may("channel", "internal/..."), "HTTP calls of channels, with their errors"},
	{"channel/webhook", may("channel", "channel/internal/post", "internal/..."), "sends events to subscriptions; the executor keeps those"},

	{"executor/internal/errs", may("internal/...", "store/encrypted"), "errors and limits that all parts share"},
	{"executor/internal/ids", may("."), "visible ids and digests"},
	{"executor/internal/retry", may("store"), "how to repeat what lost a race"},
	{"executor/internal/progress", may("provider", "store"), "progress of runs, in memory"},
	{"executor/internal/stats", may("executor/internal/ids", "store"), "counts, in memory"},
	{"executor/internal/storeclock", may("internal/..."), "the clock of the store"},
	{"executor/internal/background", may("internal/...", "provider", "store"), "lifecycle of goroutines"},
	{"executor/internal/docs", may(".", "analytics", "desk", "desk/people", "executor/internal/errs", "store", "store/encrypted"), "documents: below everything that stores"},
	{"executor/internal/providers", may("executor/internal/errs", "provider", "store", "store/encrypted"), "finds providers"},
	{"executor/internal/tracing", may(".", "executor/internal/docs", "executor/internal/ids", "store"), "spans"},
	{"executor/internal/txn", may("audit", "executor/internal/docs", "store"), "the unit of work"},
	{"executor/internal/auditrec", may(".", "audit", "desk", "executor/internal/docs", "executor/internal/txn", "internal/...", "policy/..."), "audit lines of changes"},
	{"executor/internal/history", may(".", "desk", "executor/internal/docs", "executor/internal/ids", "internal/...", "store"), "what a run has asked"},
	{"executor/internal/periodic", may("audit", "executor/internal/background", "executor/internal/docs", "executor/internal/errs", "store", "store/encrypted"), "periodic jobs know nothing of runs"},
	{"executor/internal/govern", may(".", "audit", "desk", "executor/internal/auditrec", "executor/internal/docs", "executor/internal/errs", "executor/internal/history", "executor/internal/ids", "executor/internal/retry", "executor/internal/txn", "internal/...", "policy", "policy/...", "provider", "store", "store/encrypted"), "policy"},
	{"executor/internal/requests", may(".", "audit", "desk", "executor/internal/auditrec", "executor/internal/background", "executor/internal/docs", "executor/internal/errs", "executor/internal/govern", "executor/internal/history", "executor/internal/providers", "executor/internal/retry", "executor/internal/storeclock", "executor/internal/txn", "internal/...", "policy", "policy/...", "provider", "store", "store/encrypted"), "requests, above policy"},
	{"executor/internal/outbox", may(".", "audit", "channel", "desk", "desk/people", "executor/internal/auditrec", "executor/internal/background", "executor/internal/docs", "executor/internal/ids", "executor/internal/providers", "executor/internal/requests", "executor/internal/retry", "executor/internal/stats", "executor/internal/txn", "internal/...", "provider", "store", "store/encrypted"), "delivery"},
	{"executor/internal/expiry", may("analytics", "audit", "desk", "executor/internal/auditrec", "executor/internal/background", "executor/internal/docs", "executor/internal/requests", "executor/internal/retry", "executor/internal/stats", "executor/internal/storeclock", "executor/internal/txn", "store", "store/encrypted"), "deadlines"},
	{"executor/internal/await", may(".", "executor/internal/background", "executor/internal/docs", "executor/internal/errs", "store", "store/encrypted"), "waits for outcomes"},
	{"executor/internal/view", may(".", "audit", "desk", "executor/internal/await", "executor/internal/background", "executor/internal/docs", "executor/internal/errs", "executor/internal/providers", "provider", "store", "store/encrypted"), "reads"},
	{"executor/internal/decide", may(".", "audit", "desk", "executor/internal/auditrec", "executor/internal/background", "executor/internal/docs", "executor/internal/errs", "executor/internal/govern", "executor/internal/history", "executor/internal/ids", "executor/internal/providers", "executor/internal/requests", "executor/internal/retry", "executor/internal/tracing", "executor/internal/txn", "internal/...", "provider", "store", "store/encrypted"), "decisions"},
	{"executor/internal/worker", may(".", "audit", "desk", "executor/internal/auditrec", "executor/internal/await", "executor/internal/background", "executor/internal/docs", "executor/internal/errs", "executor/internal/govern", "executor/internal/history", "executor/internal/ids", "executor/internal/progress", "executor/internal/providers", "executor/internal/requests", "executor/internal/retry", "executor/internal/stats", "executor/internal/storeclock", "executor/internal/tracing", "executor/internal/txn", "internal/...", "provider", "store", "store/encrypted"), "execution"},
	{"executor/internal/admin", may(".", "analytics", "audit", "desk", "executor/internal/auditrec", "executor/internal/background", "executor/internal/docs", "executor/internal/errs", "executor/internal/history", "executor/internal/periodic", "executor/internal/providers", "executor/internal/requests", "executor/internal/retry", "executor/internal/storeclock", "executor/internal/txn", "provider", "store", "store/encrypted"), "maintenance"},
	{"executor/internal/webhooks", may(".", "audit", "channel", "channel/webhook", "desk", "executor/internal/auditrec", "executor/internal/background", "executor/internal/docs", "executor/internal/errs", "executor/internal/retry", "internal/...", "store", "store/encrypted"), "subscriptions to events"},
	{"executor", may(".", "channel", "channel/webhook", "store", "store/encrypted", "provider", "desk", "desk/people", "policy", "policy/...", "audit", "analytics", "executor/internal/errs", "executor/internal/ids", "executor/internal/retry", "executor/internal/progress", "executor/internal/stats", "executor/internal/storeclock", "executor/internal/background", "executor/internal/docs", "executor/internal/providers", "executor/internal/tracing", "executor/internal/txn", "executor/internal/auditrec", "executor/internal/history", "executor/internal/periodic", "executor/internal/govern", "executor/internal/requests", "executor/internal/outbox", "executor/internal/webhooks", "executor/internal/expiry", "executor/internal/await", "executor/internal/view", "executor/internal/decide", "executor/internal/worker", "executor/internal/admin", "internal/..."), "the only writer of run status; it uses providers through the port"},

	{"dialog/classifier", may("agent", "dialog"), "judges replies with a model of package agent, so that package dialog depends on no model"},
	{"dialog/voice", may("dialog", "internal/..."), "a device is a channel of a conversation"},
	{"dialog/runs", may(".", "dialog", "executor", "graph", "provider/inproc", "store", "internal/..."), "connects conversations to an executor, so that package dialog depends on no engine"},

	{"channel/slack/slackfake", may(), "a Slack workspace for tests and the demo; it shares no code with the channel that it tests"},
	{"channel/webpush", may("channel", "channel/internal/post", "desk", "internal/..."), "sends to browsers; the executor keeps their subscriptions"},
	{"channel/webpush/pushfake", may(), "a push service for tests; it shares no code with the channel that it tests"},
	{"channel/channeltest", may(".", "channel", "desk", "executor", "provider/inproc", "store", "internal/..."), "the suite uses a channel only through the port, in front of a real executor"},
	{"channel/...", may(".", "api", "client", "channel", "channel/...", "desk", "internal/..."), "a channel renders cards and acts for people through the API, so it cannot bypass the API"},
	{"web/internal/...", may("internal/..."), "rendering of untrusted text, independent of the API"},
	{"web", may(".", "drawing", "analytics", "api", "audit", "client", "desk", "dialog", "policy", "policy/...", "web/internal/...", "internal/..."), "the pages are an API client, so they cannot bypass the API; of audit, desk, dialog and policy they use the types of API responses"},
	{"mcp", may(".", "store", "executor", "desk", "internal/..."), "another protocol for the same executor"},
	{"server/internal/admission", may("internal/..."), "limits know accounts and connections, not the API"},
	{"server/internal/problems", may(".", "api", "store", "provider", "executor", "desk", "internal/..."), "error responses, for all parts of the server"},
	{"server/internal/stream", may("internal/..."), "server-sent events, whatever they are about"},
	{"server/internal/presence", may("internal/..."), "viewers of requests, for a short time"},
	{"server/authn", may("server/internal/problems", "api", "store", "executor", "desk", "audit", "internal/..."), "identifies callers; knows nothing of runs and requests"},
	{"server/internal/endpoint", may("server/authn", "server/internal/problems", "api", "executor", "desk", "internal/..."), "what handlers share: descriptions of operations, the principal, pages"},
	{"server/internal/visibility", may(".", "server/authn", "server/internal/problems", "api", "store", "executor", "desk", "internal/..."), "what a caller may see, for all operations that show requests"},
	{"server/internal/outcomes", may(".", "server/internal/endpoint", "server/internal/problems", "server/internal/visibility", "api", "executor", "internal/..."), "outcomes of runs as responses, for all operations that have one"},
	{"server/internal/...", may(".", "server/authn", "server/internal/admission", "server/internal/endpoint", "server/internal/presence", "server/internal/problems", "server/internal/stream", "server/internal/visibility", "server/internal/outcomes", "api", "store", "provider", "executor", "desk", "desk/hours", "desk/people", "policy", "policy/...", "audit", "analytics", "channel", "channel/webhook", "channel/webpush", "internal/..."), "handlers: they share the packages above and do not import each other"},
	{"server/internal/conversations", may("server/authn", "server/internal/admission", "server/internal/endpoint", "server/internal/problems", "server/internal/stream", "api", "dialog", "internal/..."), "conversations with end users; it knows neither runs nor requests"},
	{"server", may(".", "server/authn", "server/internal/...", "api", "store", "provider", "executor", "desk", "desk/hours", "desk/people", "policy", "policy/...", "audit", "analytics", "dialog", "web", "mcp", "channel", "channel/...", "client", "internal/..."), "connects the protocols to the executor; cmd chooses providers and stores"},

	{"app/sample", may(".", "graph", "provider", "provider/inproc"), "demo graphs, written like user code, and a provider that fails"},
	{"app/config", may("internal/..."), "settings are read and validated without the packages they configure"},
	{"web/internal/webtest", may(".", "api", "channel/webpush", "dialog", "dialog/runs", "store", "store/encrypted", "store/memory", "executor", "provider", "provider/...", "server", "server/authn", "internal/..."), "runs a server with the pages in tests"},
	{"app/tui", may(".", "drawing", "api", "client", "internal/..."), "the terminal inbox is an API client"},
	{"app", may(anyPackage), "the program with all commands, importable so that users can add their own graphs"},

	{"examples/...", may(anyPublic, "examples/..."), "examples use only public packages; programs cannot be imported, so shared code is in examples/console"},
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
	{"desk", "github.com/google/jsonschema-go", "the answer of a decision is validated against the schema of its kind"},

	{"internal/yamlfile", "go.yaml.in/yaml/v3", "routes and groups are written in YAML"},
	{"internal/suspend", "golang.org/x/sys", "system clocks that the standard library does not expose"},

	{"agent/openai", "github.com/openai/openai-go/v3", "the vendor's client implements the wire protocol"},
	{"agent/anthropic", "github.com/anthropics/anthropic-sdk-go", "the vendor's client implements the wire protocol"},

	{"store/sqlite", "modernc.org/sqlite", "SQLite in pure Go: the binary stays static and builds without a C compiler"},
	{"store/postgres", "github.com/jackc/pgx/v5", "PostgreSQL in pure Go, with pipelines, cancel requests and error codes that database/sql hides"},
	{"store/redis", "github.com/redis/go-redis/v9", "the standard Redis client, with reconnects, pooling and pipelines"},
	{"server", "github.com/danielgtaylor/huma/v2", "OpenAPI 3.1 from the code, with validation errors per field"},
	{"server/internal/...", "github.com/danielgtaylor/huma/v2", "handlers register operations, errors become problems, and streams answer operations"},
	{"server", "github.com/prometheus/client_golang", "metrics of other components are collectors"},
	{"server/internal/metrics", "github.com/prometheus/client_golang", "Prometheus metrics"},
	{"server/authn", "golang.org/x/crypto", "argon2id hashes of passwords"},
	{"server/authn", "golang.org/x/time", "limits how often an unknown key makes the server fetch the keys of the identity provider"},
	{"server/internal/admission", "golang.org/x/time", "token bucket rate limiter"},
	{"server/authn", "github.com/coreos/go-oidc/v3", "widely used ID token verification"},
	{"server/authn", "github.com/go-webauthn/webauthn", "verifies passkeys: attestation objects, signatures, counters"},
	{"server/authn", "golang.org/x/oauth2", "the authorization code flow with PKCE"},
	{"app", "github.com/alecthomas/kong", "a command line as structs: help texts, environment and completion from one place"},
	{"app", "go.opentelemetry.io/otel", "traces are sent to a collector if the settings name one; this is the API"},
	{"app", "go.opentelemetry.io/otel/trace", "the same"},
	{"app", "go.opentelemetry.io/otel/sdk", "collects, samples and batches spans"},
	{"app", "go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp", "sends spans over OTLP"},
	{"channel/slack", "github.com/slack-go/slack", "the wire types of Slack, verification of signatures and Socket Mode"},
	{"channel/email", "github.com/wneessen/go-mail", "SMTP with TLS, and MIME messages"},
	{"channel/webpush/pushfake", "github.com/golang-jwt/jwt/v5", "verifies tokens as a push service does, independently of the channel"},
	{"oncall", "github.com/arran4/golang-ical", "iCalendar files"},
	{"oncall", "github.com/teambition/rrule-go", "repeated events of calendars"},
	{"channel/slack/slackfake", "github.com/gorilla/websocket", "the server side of Socket Mode; the client side in slack-go uses it too"},
	{"app/config", "go.yaml.in/yaml/v3", "settings are YAML; nodes have line numbers for error messages"},
	{"app/tui", "charm.land/bubbletea/v2", "event loop, key input and rendering of a terminal program"},
	{"app/tui", "charm.land/lipgloss/v2", "terminal colours and character widths"},
	{"app/tui", "github.com/charmbracelet/x/ansi", "removes styles from the text whose hash is recorded"},
	{"app/tui", "github.com/charmbracelet/x/term", "distinguishes a terminal from a pipe"},
	{"executor/internal/tracing", "go.opentelemetry.io/otel", "spans for runs; only the API, which does nothing by itself"},
	{"executor/internal/tracing", "go.opentelemetry.io/otel/trace", "the same"},
	{"executor/internal/worker", "go.opentelemetry.io/otel/trace", "hands spans from the start of an execution to its end"},
	{"executor", "go.opentelemetry.io/otel/trace", "Config.Tracer"},
	{"server", "go.opentelemetry.io/otel", "HTTP requests join the traces of their callers"},
	{"server", "go.opentelemetry.io/otel/trace", "the same"},
	{"policy", "cel.dev/cel-go", "policies are written in CEL"},
	{"policy/internal/...", "go.yaml.in/yaml/v3", "rules are YAML; nodes have line numbers for error messages"},
	{"audit", "golang.org/x/mod", "checkpoints of the chain are signed notes and tile logs (sumdb/note, sumdb/tlog)"},

	{"examples/dataagent", "modernc.org/sqlite", "its agent uses a real database; the driver of the store is linked anyway"},

	{"internal/oidctest", "github.com/golang-jwt/jwt/v5", "test support: signs tokens with another library than the one that verifies them"},
	{"internal/pgtest", "github.com/jackc/pgx/v5", "test support: creates a database for each test"},
	{"store/storetest", "pgregory.net/rapid", "test support: the port's rules are checked as properties"},
	{"store/storetest", "github.com/google/go-cmp", "test support: prints differences"},
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
	{"internal/redistest", "a Redis server per test; fails the test if there is no Redis"},
	{"internal/testtier", "skips a test in the fast tier"},
	{"internal/testserver", "runs a test in a process that crashes and checks that its servers are gone"},
	{"store/internal/fixture", "writes test data for the stores"},
	{"store/internal/proxytest", "a network proxy that ends with the test"},
	{"store/storetest", "the store conformance suite, called from the tests of each store"},
	{"audit/audittest", "the audit log conformance suite, called from the tests of each log"},
	{"channel/channeltest", "the channel conformance suite, called from its own tests with every channel"},
	{"provider/providertest", "the provider conformance suite, called from the tests of each provider"},
	{"provider/claude/claudetest", "finds the CLI, and a model that fails the test for invalid calls"},
	{"web/internal/webtest", "a server with the pages, and browsers of its users"},
	{"examples/console/consoletest", "runs the agent examples as real processes; only their tests call it"},
}

func may(patterns ...string) []string { return patterns }
