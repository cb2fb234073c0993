package arch

// module is the path that this module's packages start with. In the tables a package is written without it, "." is the
// root package, and a trailing "/..." stands for a whole subtree. A package's own row counts, or else the one with the longest
// matching pattern.
const module = "github.com/fermata-go/fermata"

// Patterns for those that stand above everything else.
const (
	anyPublic  = "<public>" // every package that a user of the module could import too
	anyPackage = "..."
)

// A floor says what one package may import of this module.
type layer struct {
	pkg string
	may []string
	why string
}

// layers is the house plan, from the ground up. A row may name only itself and rows before it: imports point down.
var layers = []layer{
	{"internal/...", may("internal/..."), "what no user may import; the vocabulary itself uses it, so it cannot know the vocabulary"},
	{".", may("internal/..."), "the vocabulary: everything stands on it, so it stands on nothing"},

	{"store", may(".", "internal/..."), "the port behind which state is kept; it knows no engine, so that any engine may use it"},
	{"store/memory", may("store", "internal/..."), "an implementation knows its port and no other implementation"},
	{"store/internal/booktest", may("store"), "books for the tests of single stores, written through the port"},
	{"store/internal/proxytest", may(), "a network for the tests of stores, which knows nothing of them"},
	{"store/storetest", may("store", "store/memory", "internal/..."), "the suite sees a store only through the port, as the engine does, and compares it with the reference"},
	{"store/sqlite", may("store", "internal/..."), "an implementation knows its port and no other implementation"},
	{"store/postgres", may("store", "internal/..."), "an implementation knows its port and no other implementation"},
	{"store/redis", may("store", "internal/..."), "an implementation knows its port and no other implementation"},

	{"drawing", may(".", "internal/..."), "shows graphs, whoever has them: it knows no engine"},
	{"graph", may(".", "store", "drawing", "internal/..."), "the engine saves through the store's port and never learns which store it is"},
	{"gate", may(".", "graph", "internal/..."), "approval nodes are ordinary nodes: what they need, an author's own node can have too"},
	{"tool", may(".", "graph", "internal/..."), "a tool works without an agent and without a model"},
	{"agent", may(".", "store", "graph", "tool", "internal/..."), "agents are built on graphs, so they hold and resume as graphs do"},
	{"agent/...", may(".", "tool", "agent", "internal/..."), "a model, a vendor's or a scripted one, knows the agent's port and not the engine"},

	{"provider", may(".", "store", "drawing", "internal/..."), "the port to whatever executes runs; our own engine is one provider among others"},
	{"provider/providertest", may(".", "store", "provider"), "the suite sees a provider only through the port, as the executor does"},
	{"provider/inproc", may(".", "store", "graph", "gate", "tool", "agent", "provider", "internal/..."), "the one provider that is our own engine"},
	{"provider/...", may(".", "store", "provider", "internal/..."), "an adapter speaks its peer's protocol and knows nothing of our engine"},

	{"desk/hours", may(), "when people are at work is a matter of clocks and calendars alone"},
	{"desk/quorum", may(), "counting people needs to know nothing of what they decide"},
	{"desk", may(".", "desk/hours", "desk/quorum", "internal/..."), "pure rules: requests and decisions depend neither on who keeps them nor on who executes"},
	{"desk/routefile", may("desk", "desk/hours", "internal/..."), "reads routes; the rules themselves know no file format"},
	{"policy/internal/...", may("internal/..."), "how rules are read from a file, apart from what they mean"},
	{"policy", may(".", "policy/internal/...", "store", "internal/..."), "rules are judged without a run, so they can be simulated and explained"},
	{"policy/...", may("policy", "policy/internal/...", "internal/..."), "grants, replays and test cases are told by rules and decisions, never the other way round"},
	{"audit", may(".", "store", "internal/..."), "the record must be verifiable without the parts that it records"},
	{"audit/audittest", may("audit"), "the suite sees a log only through the port, and compares it with the reference"},
	{"analytics", may(".", "store", "internal/..."), "questions to the stored history; asking them runs nothing"},
	{"dialog", may(".", "store", "internal/..."), "speaks to an end user on behalf of any agent, so it knows none of them"},

	{"executor", may(".", "store", "provider", "desk", "policy", "policy/...", "audit", "analytics", "internal/..."), "the only writer of run status; providers come to it through the port"},

	{"api", may(".", "drawing"), "the words of the HTTP API, for both of its ends"},
	{"client", may(".", "api", "analytics", "internal/..."), "a program that speaks to a server needs nothing of the server, but for the words of its reports"},

	{"channel/...", may(".", "store", "executor", "desk", "internal/...", "channel/..."), "a channel renders the request row and votes on it"},
	{"web", may(".", "store", "executor", "desk", "internal/..."), "the inbox is a view of the request row, like any channel"},
	{"mcp", may(".", "store", "executor", "desk", "internal/..."), "another door to the same executor"},
	{"server", may(".", "api", "store", "provider", "executor", "desk", "policy", "policy/...", "audit", "analytics", "dialog", "web", "mcp", "channel/...", "internal/..."), "joins the doors to the executor; which provider and which store stand behind it is said in cmd"},

	{"app/sample", may(".", "graph", "provider", "provider/inproc"), "graphs for the demo are written as a user would write them; one provider gives up"},
	{"app/config", may("internal/..."), "settings are read and checked without the parts that they are for"},
	{"app/tui", may(".", "drawing", "api", "client", "internal/..."), "the inbox in a terminal is one more client: what it knows, it knows from the API"},
	{"app", may(anyPackage), "the program with all its commands, in a package of its own so that users can build it with graphs of theirs"},

	{"examples/...", may(anyPublic, "examples/..."), "an example shows what a user can do, so it has what a user has; programs cannot be imported, so what examples share is examples/console"},
	{"deploy/...", may(), "what an image needs beside the program, and knows nothing of it"},
	{"cmd/...", may(anyPackage), "wires everything together and is imported by nobody"},
}

// A need is a third-party module that one package may import.
type dependency struct {
	pkg    string
	module string
	why    string
}

// dependencies lists every third-party module outside of tests. Whoever imports Fermata gets these along with it.
var dependencies = []dependency{
	{"internal/...", "github.com/google/jsonschema-go", "the root package may need it, so what the root package is built from may too"},
	{"internal/box", "github.com/klauspost/compress", "what is sealed cannot be made smaller any more, so it is before; the standard library has no zstd"},
	{".", "github.com/google/jsonschema-go", "a kind derives the schemas of its question and its answer from Go types"},
	{"graph", "github.com/google/jsonschema-go", "answers are checked against their kind before anything runs"},
	{"gate", "github.com/google/jsonschema-go", "a gate's question and answer are kinds"},
	{"tool", "github.com/google/jsonschema-go", "a tool tells the model the schema of its arguments"},
	{"agent", "github.com/google/jsonschema-go", "an agent hands the schemas of its tools to the model"},
	{"desk", "github.com/google/jsonschema-go", "a decision's answer is checked against the kind's schema"},

	{"internal/yamlfile", "go.yaml.in/yaml/v3", "routes and groups are written in YAML"},
	{"internal/awake", "golang.org/x/sys", "the clocks of the system, of which the standard library has two"},

	{"agent/openai", "github.com/openai/openai-go/v3", "the vendor's own client: it follows the wire protocol, so that we need not"},
	{"agent/anthropic", "github.com/anthropics/anthropic-sdk-go", "the vendor's own client: it follows the wire protocol, so that we need not"},

	{"store/sqlite", "modernc.org/sqlite", "SQLite in pure Go: the binary stays static and builds without a C compiler"},
	{"store/postgres", "github.com/jackc/pgx/v5", "PostgreSQL in pure Go, with its own protocol: pipelines, cancel requests and error codes that database/sql hides"},
	{"store/redis", "github.com/redis/go-redis/v9", "the client that everybody knows; it reconnects, pools and pipelines"},
	{"server", "github.com/danielgtaylor/huma/v2", "OpenAPI 3.1 from the code, with validation that names every wrong field"},
	{"server", "github.com/prometheus/client_golang", "metrics as everybody collects them"},
	{"server", "golang.org/x/time", "a token bucket that is right"},
	{"server", "github.com/coreos/go-oidc/v3", "ID tokens are checked by code that many others rely on"},
	{"server", "golang.org/x/oauth2", "the authorization code flow with PKCE"},
	{"app", "github.com/alecthomas/kong", "a command line as structs: help texts, environment and completion from one place"},
	{"app", "go.opentelemetry.io/otel", "traces are sent to a collector if the settings name one: the API, as the executor has it"},
	{"app", "go.opentelemetry.io/otel/trace", "the same"},
	{"app", "go.opentelemetry.io/otel/sdk", "collects the spans, picks and batches them"},
	{"app", "go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp", "sends them as every collector takes them"},
	{"app/config", "go.yaml.in/yaml/v3", "settings are YAML; the nodes know their lines, so that mistakes can be shown where they are"},
	{"app/tui", "charm.land/bubbletea/v2", "the event loop, the keys and the renderer of a terminal program, on every platform"},
	{"app/tui", "charm.land/lipgloss/v2", "colours that go with the terminal, and how wide a character is"},
	{"app/tui", "github.com/charmbracelet/x/term", "tells a terminal from a pipe"},
	{"executor", "go.opentelemetry.io/otel", "runs are drawn for those who look at traces; the API alone, which does nothing by itself"},
	{"executor", "go.opentelemetry.io/otel/trace", "the same"},
	{"server", "go.opentelemetry.io/otel", "requests are parts of the callers' traces"},
	{"server", "go.opentelemetry.io/otel/trace", "the same"},
	{"policy", "cel.dev/cel-go", "policies are written in CEL"},
	{"policy/internal/...", "go.yaml.in/yaml/v3", "rules stand in YAML files; its nodes know their lines, so that mistakes can be shown where they are"},
	{"audit", "golang.org/x/mod", "checkpoints of the chain are signed notes and tile logs (sumdb/note, sumdb/tlog)"},

	{"examples/dataagent", "modernc.org/sqlite", "its agent works on a real database; the store's driver is linked anyway"},

	{"internal/oidctest", "github.com/golang-jwt/jwt/v5", "test support: signs the tokens of a provider, with another library than the one that checks them"},
	{"internal/pgtest", "github.com/jackc/pgx/v5", "test support: makes a database for each test"},
	{"store/storetest", "pgregory.net/rapid", "test support: the port's rules are checked as properties"},
	{"store/storetest", "github.com/google/go-cmp", "test support: says what differs"},
}

// A testSupport row names a package which is no test but may import testing.
type testSupport struct {
	pkg string
	why string
}

// testSupports are the exceptions to: what a program links must not register test flags or take a *testing.T.
var testSupports = []testSupport{
	{"agent/internal/modeltest", "a service that fails the test if it is asked too often"},
	{"internal/golden", "compares with golden files, and knows the flag that writes them"},
	{"internal/oidctest", "gives each test an OpenID provider of its own, which fails the test if a client breaks the rules"},
	{"internal/pgtest", "gives each test a database of its own and fails the test if there is no PostgreSQL"},
	{"internal/redistest", "gives each test a Redis of its own and fails the test if there is none"},
	{"internal/testserver", "starts a test again in a process that ends badly, and wants its servers gone"},
	{"store/internal/booktest", "writes books of runs for the tests of single stores"},
	{"store/internal/proxytest", "gives a test a network of its own, which ends with it"},
	{"store/storetest", "the suite that every store passes is called from the store's own tests"},
	{"audit/audittest", "the suite that every audit log passes is called from the store's own tests"},
	{"provider/providertest", "the suite that every provider passes is called from the provider's own tests"},
	{"examples/console/consoletest", "tells the story of every agent example, with real processes; only their tests call it"},
}

func may(patterns ...string) []string { return patterns }
