// Package config is what an operator can say to the server: in a file, in the environment, on the command line.
//
//	c, err := config.Load(config.Source{File: "fermata.yaml", Environ: os.Environ()})
//
// A file that says something that nobody knows is refused, with the line: a key that is ignored is a setting that somebody believes in.
// What the later says counts: the defaults, the file, the environment, the command line. [Example] is the whole of it, with comments.
package config

import (
	"log/slog"
	"strings"
	"time"
)

// Config is everything that can be said. The tag key is the name in the file, help the comment in the example, enum the words that are
// taken, min the least number or duration.
type Config struct {
	Listen   Listen   `key:"listen" help:"Where the server is reached."`
	Store    Store    `key:"store" help:"Where everything is kept."`
	Key      Key      `key:"key" help:"The key with which everything in the store is sealed."`
	Auth     Auth     `key:"auth" help:"Who gets in, beside the programs that have an API key: fermata keys create."`
	Runs     Runs     `key:"runs" help:"How runs are executed, and how long they are kept."`
	Desk     Desk     `key:"desk" help:"How people decide: by which rules, in which groups, told on which ways. Rules and groups are read again when their files change; a file that cannot be loaded changes nothing."`
	Audit    Audit    `key:"audit" help:"How the audit logs of all accounts are looked after; of several replicas one at a time does it. See docs/audit.md."`
	Limits   Limits   `key:"limits" help:"What callers may use."`
	Webhooks Webhooks `key:"webhooks" help:"Answers that are sent to agents elsewhere."`
	Metrics  Metrics  `key:"metrics" help:"What operators watch, in Prometheus' format."`
	Tracing  Tracing  `key:"tracing" help:"What runs do and wait for, drawn for those who look at traces; never what they work on."`
	Log      Log      `key:"log" help:"What operators should know goes to standard error; never what runs work on, and no secrets."`

	from map[string]string // by key, where its value was said; see From
	// Warnings are variables of the environment that look like settings and are none.
	Warnings []string
}

// Listen is where the server is reached.
type Listen struct {
	Addr string `key:"addr" help:"HOST:PORT. Only this machine reaches 127.0.0.1; :8080 is for everybody; port 0 takes a free one."`
	TLS  TLS    `key:"tls" help:"With both files the server speaks HTTPS; they are read again when they change. Without, put something in front of it that does."`

	ReadHeaderTimeout time.Duration `key:"readHeaderTimeout" min:"1ms" help:"How long a caller may take for the headers of a request."`
	ReadTimeout       time.Duration `key:"readTimeout" min:"1ms" help:"How long a caller may take for a whole request."`
	IdleTimeout       time.Duration `key:"idleTimeout" min:"1ms" help:"How long a connection is kept for the next request."`
	DrainTimeout      time.Duration `key:"drainTimeout" min:"0s" help:"How long what is under way may take after the server was told to end. Another one goes on with the rest."`
}

// TLS is a certificate. The files are read again when they change.
type TLS struct {
	CertFile string `key:"certFile" help:"The certificate, with those between it and the root, as PEM."`
	KeyFile  string `key:"keyFile" help:"Its private key, as PEM."`
}

// Store is where everything is kept.
type Store struct {
	URL     Secret `key:"url" help:"sqlite:FILE, or postgres://USER:PASSWORD@HOST/DATABASE for several replicas."`
	URLFile string `key:"urlFile" help:"A file with the URL in the place of url: for one with a password."`
	Migrate bool   `key:"migrate" help:"Whether the server brings the schema up to date when it starts. Without, it says what is missing and ends: fermata migrate."`

	Schema      string        `key:"schema" help:"PostgreSQL: the schema with Fermata's tables, and nothing else."`
	MaxConns    int           `key:"maxConns" min:"1" max:"32768" help:"PostgreSQL: how many connections a process has at most, beside one that listens."`
	Timeout     time.Duration `key:"timeout" min:"1ms" help:"PostgreSQL: how long the database may work on one call."`
	LockTimeout time.Duration `key:"lockTimeout" min:"1ms" help:"PostgreSQL: how long a call waits for the lock of another one."`

	RedisURL     Secret `key:"redisURL" help:"redis://…: keeps checkpoints at hand, in front of PostgreSQL. It need not be there; nothing depends on it but speed."`
	RedisURLFile string `key:"redisURLFile" help:"A file with the URL in the place of redisURL."`
}

// Key is the sealing key.
type Key struct {
	File string `key:"file" help:"The file with the key; all replicas have the same. On SQLite it is by default the store's file with .key behind it, made on the first start. Else: fermata key make FILE."`
}

// Auth says who gets in.
type Auth struct {
	Session Session `key:"session" help:"What people have who signed in with a browser."`
	OIDC    OIDC    `key:"oidc" help:"The identity provider with which people sign in (OpenID Connect). Without an issuer nobody does, and only API keys count."`
}

// Session is how long somebody stays signed in.
type Session struct {
	Lifetime    time.Duration `key:"life" min:"1m" help:"How long a session lasts, however much it is used."`
	IdleTimeout time.Duration `key:"idle" min:"1m" help:"How long a session lasts unused."`
}

// OIDC is an identity provider, and what its word counts for.
type OIDC struct {
	Issuer           string   `key:"issuer" help:"The provider's URL, exactly as it stands in its tokens."`
	ClientID         string   `key:"clientID" help:"What the provider calls this server."`
	ClientSecret     Secret   `key:"clientSecret" help:"What the provider knows this server by; none for a public client. Better in a file, or in the environment."`
	ClientSecretFile string   `key:"clientSecretFile" help:"A file with the secret in the place of clientSecret."`
	RedirectURL      string   `key:"redirectURL" help:"Where people come back to, as the provider knows it: https://HOST/signin/callback"`
	Scopes           []string `key:"scopes" help:"What is asked for beside openid; profile and email if nothing is said. Some providers tell groups only if asked for groups."`
	GroupsClaim      string   `key:"groupsClaim" help:"Where the ID token, or else the userinfo endpoint, says which groups somebody is in; a.b is the member b of the claim a."`
	Roles            Roles    `key:"roles" enum:"agent,approver,auditor,admin" help:"Which roles (agent, approver, auditor, admin) the members of a group have: {reviewers: approver, platform: [admin]}. Who is in none of the groups does not get in. In the environment it is written the same way, on one line."`
	Account          string   `key:"account" help:"Whose runs people see."`
	AccountClaim     string   `key:"accountClaim" help:"In the place of account, if it differs from person to person: where the ID token says it."`
	PrincipalClaim   string   `key:"principalClaim" help:"What people are called in records. email counts only if the provider says that it is verified."`
	ACR              Classes  `key:"acr" enum:"sso,sso_mfa,hardware" help:"What the provider's classes of authentication (the claim acr) are worth to rules that ask for a strength (min_auth): {\"urn:example:gold\": sso_mfa}; sso, sso_mfa or hardware. The methods that it names (amr) count without this; the stronger counts. In the environment it is written the same way, on one line."`
	Audience         string   `key:"audience" help:"If it is said, the API also takes bearer tokens (JWT) of this issuer that were made for this audience."`
}

// Roles says, by group, which roles its members have.
type Roles map[string][]string

// Classes says, by class of authentication, what it is worth.
type Classes map[string]string

// Runs says how runs are executed and kept.
type Runs struct {
	Timeout     time.Duration `key:"timeout" min:"0s" help:"How long a question may be open before it expires; 0 is for ever."`
	Retention   time.Duration `key:"retention" min:"0s" help:"How long a run is kept after it is over; 0 is for ever. 30d are thirty days."`
	Workers     int           `key:"workers" min:"1" max:"10000" help:"How many runs this process executes at the same time, beside those that callers wait for, and webhooks on their way."`
	Lease       time.Duration `key:"lease" min:"1s" help:"How long a run stays with a process that says nothing. After that another one takes over."`
	SaveDelay   time.Duration `key:"saveDelay" min:"0s" help:"For how long a step that a run has done may be kept in memory, so that several are saved together. A process that dies does such a step again; questions, decisions and effects are never kept back. 0 saves each at once."`
	Wait        time.Duration `key:"wait" min:"1ms" help:"How long a caller waits for an execution before it hears that it is under way."`
	MaxAttempts int           `key:"maxAttempts" min:"1" help:"How often an execution is tried before the run is parked for somebody to look at it."`
}

// Desk says how people decide.
type Desk struct {
	PolicyFile  string `key:"policyFile" help:"Rules that say which actions are allowed, denied or asked about, and of whom. Without them any one approver is asked about every action. See docs/policy.md."`
	RoutesFile  string `key:"routesFile" help:"The ways on which people are told, reminded and paged, until a request expires. Without them requests are in the inbox, and expire after runs.timeout. See docs/routes.md."`
	GroupsFile  string `key:"groupsFile" help:"Who is in which group: {groups: {dba: [ann, bob]}}. People are called as in records, see auth.oidc.principalClaim."`
	Environment string `key:"environment" help:"What rules know as req.environment, as prod."`
	TimeZone    string `key:"timeZone" help:"The local time of rules, as Europe/Zurich; their own time_zone if it is left empty."`

	KeepRulings bool `key:"keepRulings" help:"Whether what the rules said of each action is kept, with its arguments, sealed, for as long as the run. Without, there is nothing to try a new policy on: fermata policy simulate --replay."`
}

// Audit says how audit logs are looked after.
type Audit struct {
	Sign  Sign  `key:"sign" help:"Signed checkpoints: whoever writes a log anew cannot sign what was there before."`
	Check Check `key:"check" help:"All logs are verified, and compared with what runs know and what was done."`
}

// Sign says how checkpoints are signed.
type Sign struct {
	Key   string        `key:"key" help:"The file with the signing key; it is made if it is not there, and all replicas have the same. Without it the server signs nothing. Keep it apart from the store: whoever has both can write a log anew."`
	Every time.Duration `key:"every" min:"1s" help:"How often what was added is signed. What is younger can be taken away unnoticed."`
	Dir   string        `key:"dir" help:"A folder to which each checkpoint is written, too: one that whoever can write to the store cannot write to. A log that does not extend what is there is never signed. It has to be there: the server does not make it. With replicas, a volume that they share."`
}

// Check says how often logs are checked.
type Check struct {
	Every time.Duration `key:"every" min:"0s" help:"How often, counted from the end of the last time; 0 is never. It reads every log and every run that is kept, one after the other."`
}

// Limits are what callers may use.
type Limits struct {
	Body         int64   `key:"body" min:"1024" help:"How many bytes a request may have."`
	Rate         float64 `key:"rate" min:"0.001" help:"How many requests a second one caller may make in the long run."`
	Burst        int     `key:"burst" min:"1" help:"How many requests one caller may make at once."`
	InFlight     int     `key:"inFlight" min:"1" help:"How many requests are served at the same time, event streams apart."`
	Concurrency  int     `key:"working" min:"0" max:"1000000" help:"How many of them are worked on at the same time. The others wait for a moment, or are refused. 0 is 32 for each core."`
	Streams      int     `key:"streams" min:"1" help:"How many event streams are open at the same time."`
	IdleConns    int     `key:"silent" min:"1" help:"How many connections of strangers are kept on which nothing is asked, at most a quarter of the files that the process may open; of callers between two requests twice as many. The next takes the place of the longest silent one."`
	OpenRequests int     `key:"open" min:"1" help:"How many open questions an account may have before it cannot start more runs."`
	ActiveRuns   int     `key:"runs" min:"1" help:"How many runs of an account may be ready or under way at the same time before it cannot start more."`

	BodyTimeout  time.Duration `key:"sending" min:"1ms" help:"How long a caller may take to send the body of a request."`
	WriteTimeout time.Duration `key:"patience" min:"1ms" help:"How long a caller may not read what is sent to it before it is cut off."`
	Heartbeat    time.Duration `key:"heartbeat" min:"1s" help:"How often an event stream says that it is alive. Less than what stands before the server allows, and than the minute after which our clients leave a silent one."`
	AuthRecheck  time.Duration `key:"recheck" min:"1s" help:"How often it is made sure, while an event stream is open, that its reader may still come in."`
}

// Webhooks are answers on their way.
type Webhooks struct {
	Secrets     []Secret `key:"secrets" help:"What webhooks are signed with, whsec_…, the newest first. Who can check a signature with a secret can make one, so each account should have its own: \"acme: whsec_…\" is for the account acme alone; one without an account is for all that have none. Better in a file, or in the environment."`
	SecretsFile string   `key:"secretsFile" help:"A file with the secrets, one a line, in the place of secrets."`
	Allow       []string `key:"allow" help:"Hosts and prefixes (10.1.0.0/16) that webhooks may go to although they are not public."`
}

// Metrics is where the metrics are.
type Metrics struct {
	Addr string `key:"addr" help:"HOST:PORT of a listener of its own for /metrics, /healthz and /readyz, so that they can be kept from those who use the server; off is none. If nobody asked for the default and it is taken, the server warns and goes without."`
}

// Off is in the place of an address where there is to be none.
const Off = "off"

// Tracing is where traces go.
type Tracing struct {
	Endpoint    string   `key:"endpoint" help:"The URL of an OpenTelemetry collector that takes OTLP over HTTP, as http://collector:4318/v1/traces; without one nothing is drawn."`
	Headers     []Secret `key:"headers" help:"What is sent along, as \"Authorization: Bearer …\". Better in a file, or in the environment."`
	HeadersFile string   `key:"headersFile" help:"A file with the headers, one a line, in the place of headers."`
	Sample      float64  `key:"sample" min:"0" help:"The part of new traces that is drawn, 0 to 1. What somebody else began is drawn if they say so."`
	Service     string   `key:"service" help:"What the server is called in traces."`
}

// Log is how the log looks.
type Log struct {
	Format string `key:"format" enum:"text,json" help:"text or json."`
	Level  string `key:"level" enum:"debug,info,warn,error" help:"debug, info, warn or error."`
}

// Default is what holds if nobody says anything.
func Default() *Config {
	return &Config{
		Listen:  Listen{Addr: "127.0.0.1:8080", ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, DrainTimeout: 20 * time.Second},
		Store:   Store{URL: "sqlite:fermata.db", Migrate: true, Schema: "fermata", MaxConns: 10, Timeout: 30 * time.Second, LockTimeout: 2 * time.Second},
		Auth:    Auth{Session: Session{Lifetime: 8 * time.Hour, IdleTimeout: 30 * time.Minute}, OIDC: OIDC{GroupsClaim: "groups", PrincipalClaim: "sub"}},
		Runs:    Runs{Timeout: 24 * time.Hour, Workers: 4, Lease: 15 * time.Second, SaveDelay: 25 * time.Millisecond, Wait: 5 * time.Second, MaxAttempts: 25},
		Desk:    Desk{KeepRulings: true},
		Audit:   Audit{Sign: Sign{Every: time.Hour}, Check: Check{Every: time.Hour}},
		Limits:  Limits{Body: 2 << 20, Rate: 50, Burst: 100, InFlight: 512, Streams: 20000, IdleConns: 5000, OpenRequests: 10000, ActiveRuns: 1000, BodyTimeout: 15 * time.Second, WriteTimeout: 10 * time.Second, Heartbeat: 15 * time.Second, AuthRecheck: time.Minute},
		Metrics: Metrics{Addr: "127.0.0.1:9464"},
		Tracing: Tracing{Sample: 1, Service: "fermata"},
		Log:     Log{Format: "text", Level: "info"},
	}
}

// From says where the value of a key was said: a file with its line, a variable, a flag; "" if nobody said it.
func (c *Config) From(key string) string { return c.from[key] }

// Secret is a value that is not shown: printed, logged or written as JSON it is a word in its place. Reveal is the value.
type Secret string

const redacted = "(secret)"

// String is not the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString is not the value.
func (s Secret) GoString() string { return s.String() }

// LogValue is not the value.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is not the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal is the value.
func (s Secret) Reveal() string { return string(s) }

// Pair is the value of a header, "Name: value", taken apart.
func (s Secret) Pair() (name, value string) {
	name, value, _ = strings.Cut(string(s), ":")
	return strings.TrimSpace(name), strings.TrimSpace(value)
}

// Webhook is a secret of webhooks, "whsec_…" or "ACCOUNT: whsec_…", taken apart. An account may have colons, a secret has none.
func (s Secret) Webhook() (account, secret string) {
	last := strings.LastIndex(string(s), ":")
	return strings.TrimSpace(string(s[:max(last, 0)])), strings.TrimSpace(string(s[last+1:]))
}
