// Package config loads the configuration of the server from a file, the environment and the command
// line.
//
//	c, err := config.Load(config.Source{File: "fermata.yaml", Environ: os.Environ()})
//
// Unknown keys are rejected with the line number and a suggestion, because an ignored key would be
// a setting that has no effect. Later sources override earlier ones: the defaults, the file, the
// environment, the command line. [Example] returns a file with every key and its description.
package config

import (
	"log/slog"
	"net/netip"
	"strings"
	"time"
)

// Config is the whole configuration. The tag key is the name in the file, help the comment in the
// example, enum the allowed values, min the smallest number or duration.
type Config struct {
	Listen     Listen     `key:"listen" help:"HTTP listener."`
	Store      Store      `key:"store" help:"Database."`
	Key        Key        `key:"key" help:"Encryption key of the store."`
	Auth       Auth       `key:"auth" help:"Authentication, in addition to API keys (fermata keys create)."`
	Runs       Runs       `key:"runs" help:"Execution and retention of runs."`
	Desk       Desk       `key:"desk" help:"Approval policy, groups, and notification routes. Policy and groups are reloaded when their files change; a file that cannot be loaded changes nothing."`
	OnCall     OnCall     `key:"oncall" help:"On-call schedules for targets such as oncall:db, in routes and in the groups of a policy, by name: a rota {db: {rota: [ann, bob], start: 2026-01-05 09:00, days: 7, timeZone: Europe/Zurich}}, an iCalendar file or URL {db: {calendar: shifts.ics, people: {ann@example.com: ann}}}, or a schedule of PagerDuty {db: {pagerduty: PABC123, tokenFile: token}}. See docs/people.md. In the environment it is written the same way, on one line."`
	Channels   Channels   `key:"channels" help:"Places where people see requests and decide."`
	Audit      Audit      `key:"audit" help:"Signing and checking of the audit logs of all accounts. One replica at a time does it. See docs/audit.md."`
	Limits     Limits     `key:"limits" help:"Limits for callers."`
	Webhooks   Webhooks   `key:"webhooks" help:"Webhooks that deliver answers to external agents."`
	Providers  Providers  `key:"providers" help:"Agents that other programs run. See docs/providers.md."`
	Assistants Assistants `key:"assistants" help:"Assistants that end users talk to, on the page Chat and with the API: a list [{id: support, title: Support, model: {provider: openai, model: gpt-5-mini, apiKeyFile: key}, instructions: You help customers., tools: […]}]. A tool is an HTTP endpoint; those that write are under the policy. See docs/assistants.md. In the environment it is written the same way, on one line."`
	Metrics    Metrics    `key:"metrics" help:"Prometheus metrics."`
	Tracing    Tracing    `key:"tracing" help:"OpenTelemetry traces of runs and requests. They contain no run data."`
	Log        Log        `key:"log" help:"Logging to standard error. The log contains no run data and no secrets."`

	from map[string]string // the source of each value by key; see From
	// Warnings lists environment variables that look like settings but are not.
	Warnings []string
}

// Listen is the HTTP listener.
type Listen struct {
	Addr      string `key:"addr" help:"HOST:PORT. 127.0.0.1 is reachable from this machine only; :8080 listens on all interfaces; port 0 uses a free port."`
	PublicURL string `key:"publicURL" help:"The address of this server in browsers, for links in messages: https://fermata.example.com. Without it messages have no links. With https, cookies are sent with TLS only."`
	TLS       TLS    `key:"tls" help:"With both files the server uses HTTPS; they are reloaded when they change. Without them, use a TLS proxy in front of the server."`

	TrustedProxies []string `key:"trustedProxies" help:"The networks of the proxies in front of the server (10.0.3.0/24). Limits for each client address use X-Forwarded-For of these proxies only. Without them, all clients of a proxy share the limits of one client."`

	ReadHeaderTimeout time.Duration `key:"readHeaderTimeout" min:"1ms" help:"Timeout for reading request headers."`
	ReadTimeout       time.Duration `key:"readTimeout" min:"1ms" help:"Timeout for reading a whole request."`
	IdleTimeout       time.Duration `key:"idleTimeout" min:"1ms" help:"How long an idle keep-alive connection is kept."`
	DrainTimeout      time.Duration `key:"drainTimeout" min:"0s" help:"Shutdown grace period for in-flight work. Unfinished runs are picked up by another replica."`
}

// Proxies returns the networks of the trusted proxies.
func (l Listen) Proxies() []netip.Prefix {
	list := make([]netip.Prefix, 0, len(l.TrustedProxies))
	for _, text := range l.TrustedProxies {
		if network, err := netip.ParsePrefix(text); err == nil { // Load has checked it
			list = append(list, network.Masked())
		}
	}
	return list
}

// TLS is a certificate. The files are reloaded when they change.
type TLS struct {
	CertFile string `key:"certFile" help:"The certificate chain, as PEM."`
	KeyFile  string `key:"keyFile" help:"The private key, as PEM."`
}

// Store is the database.
type Store struct {
	URL     Secret `key:"url" help:"sqlite:FILE, or postgres://USER:PASSWORD@HOST/DATABASE for several replicas."`
	URLFile string `key:"urlFile" help:"A file that contains the URL, instead of url, for a URL with a password."`
	Migrate bool   `key:"migrate" help:"Whether the server migrates the schema at startup. If false, it reports pending migrations and exits; run fermata migrate."`

	Schema      string        `key:"schema" help:"PostgreSQL: the schema with Fermata's tables. It must contain nothing else."`
	MaxConns    int           `key:"maxConns" min:"1" max:"32768" help:"PostgreSQL: maximum number of connections of a process, plus one for notifications."`
	Timeout     time.Duration `key:"timeout" min:"1ms" help:"PostgreSQL: statement timeout."`
	LockTimeout time.Duration `key:"lockTimeout" min:"1ms" help:"PostgreSQL: lock timeout."`
}

// Key is the encryption key.
type Key struct {
	File string `key:"file" help:"The key file, the same for all replicas. On SQLite it defaults to the store's file name with .key appended, and is created on the first start. Otherwise create it with: fermata key make FILE."`
}

// Auth configures authentication.
type Auth struct {
	Session Session `key:"session" help:"Browser sessions."`
	OIDC    OIDC    `key:"oidc" help:"OpenID Connect provider for sign-in. Without an issuer only API keys are accepted."`
}

// Session configures browser sessions.
type Session struct {
	Lifetime    time.Duration `key:"lifetime" min:"1m" help:"Maximum duration of a session."`
	IdleTimeout time.Duration `key:"idleTimeout" min:"1m" help:"How long an unused session lasts."`
}

// OIDC is an identity provider and the mapping of its claims.
type OIDC struct {
	Issuer           string   `key:"issuer" help:"The provider's URL, exactly as in its tokens."`
	ClientID         string   `key:"clientID" help:"The client id of this server at the provider."`
	ClientSecret     Secret   `key:"clientSecret" help:"The client secret; empty for a public client. Better in a file or in the environment."`
	ClientSecretFile string   `key:"clientSecretFile" help:"A file that contains the secret, instead of clientSecret."`
	RedirectURL      string   `key:"redirectURL" help:"The callback URL registered at the provider: https://HOST/signin/callback"`
	Scopes           []string `key:"scopes" help:"Scopes to request in addition to openid; profile and email by default. Some providers send groups only with the scope groups."`
	GroupsClaim      string   `key:"groupsClaim" help:"The claim with the groups of a person, in the ID token or else in the userinfo response; a.b is the member b of the claim a."`
	Roles            Roles    `key:"roles" enum:"agent,approver,auditor,user,admin" help:"Roles (agent, approver, auditor, user, admin) by group: {reviewers: approver, platform: [admin]}. People in none of the groups cannot sign in. In the environment it is written the same way, on one line."`
	Account          string   `key:"account" help:"The account of people who sign in."`
	AccountClaim     string   `key:"accountClaim" help:"Instead of account, if it differs per person: the claim with the account."`
	PrincipalClaim   string   `key:"principalClaim" help:"The claim that identifies people in records. email counts only if the provider has verified it."`
	ACR              Classes  `key:"acr" enum:"sso,sso_mfa,hardware" help:"Strength of the provider's authentication classes (the claim acr) for rules with min_auth: {\"urn:example:gold\": sso_mfa}; sso, sso_mfa or hardware. Authentication methods (amr) count without this; the stronger one applies. In the environment it is written the same way, on one line."`
	Audience         string   `key:"audience" help:"If set, the API also accepts bearer tokens (JWT) of this issuer that were issued for this audience."`
}

// Roles maps groups to roles.
type Roles map[string][]string

// Classes maps authentication classes to a strength.
type Classes map[string]string

// Runs configures execution and retention of runs.
type Runs struct {
	Timeout     time.Duration `key:"timeout" min:"0s" help:"Default time until a request expires; 0 means never."`
	Retention   time.Duration `key:"retention" min:"0s" help:"How long a run is kept after its end; 0 means forever. 30d is thirty days."`
	Workers     int           `key:"workers" min:"1" max:"10000" help:"Runs that this process executes concurrently, in addition to those that callers wait for and to webhook deliveries."`
	Lease       time.Duration `key:"lease" min:"1s" help:"Lease duration. A run of a process that has not renewed its lease is taken over by another one."`
	SaveDelay   time.Duration `key:"saveDelay" min:"0s" help:"How long finished steps may stay in the write-behind buffer, so that several are saved together. After a crash such a step is repeated; requests, decisions and effects are never delayed. 0 saves each step at once."`
	Wait        time.Duration `key:"wait" min:"1ms" help:"How long a caller waits for an execution before it gets a pending result."`
	MaxAttempts int           `key:"maxAttempts" min:"1" help:"Execution attempts before the run is parked until an operator acts."`
}

// Desk configures approvals.
type Desk struct {
	PolicyFile  string `key:"policyFile" help:"Policy file: which actions are allowed, denied or need approval, and by whom. Without it every action needs approval by any one approver. See docs/policy.md."`
	RoutesFile  string `key:"routesFile" help:"Routes file: notices, reminders and pages until a request expires. Without it requests have the default route: a reminder after 30 minutes, a page after 2 hours, expiry after 24 hours or runs.timeout, whichever is earlier. See docs/routes.md."`
	GroupsFile  string `key:"groupsFile" help:"Groups file: {groups: {dba: [ann, bob]}}. People are named as in records, see auth.oidc.principalClaim."`
	Environment string `key:"environment" help:"The value of req.environment in rules, for example prod."`
	TimeZone    string `key:"timeZone" help:"The local time zone of rules, for example Europe/Zurich; defaults to the policy's time_zone."`

	KeepRulings bool `key:"keepRulings" help:"Whether each ruling is kept with its arguments, encrypted, for as long as the run. Without it a new policy cannot be replayed: fermata policy simulate --replay."`
}

// Channels configures where people see requests.
type Channels struct {
	Slack        Slack        `key:"slack" help:"A Slack workspace, for targets such as slack:C0EMEA or slack:#ops. See docs/slack.md; check it with: fermata slack doctor."`
	Email        Email        `key:"email" help:"E-mail over SMTP with TLS, for targets such as email:ann@example.com. Links in messages need listen.publicURL."`
	PagerDuty    PagerDuty    `key:"pagerduty" help:"PagerDuty (Events API v2), for targets such as pagerduty:db."`
	Alertmanager Alertmanager `key:"alertmanager" help:"Prometheus Alertmanager, for targets such as alertmanager:oncall; the name is the label receiver of the alert."`
	Teams        Teams        `key:"teams" help:"Microsoft Teams, for targets such as teams:ops."`
	WebPush      WebPush      `key:"webpush" help:"Notifications in browsers (Web Push), for people who turn them on on their profile page. Targets name people, such as group:finops. See docs/webpush.md."`
}

// Audit configures signing and checking of audit logs.
type Audit struct {
	Sign  Sign  `key:"sign" help:"Signed checkpoints: a rewritten log does not match earlier signatures."`
	Check Check `key:"check" help:"Periodic verification of all logs, and reconciliation with runs and effects."`
}

// Sign configures signing.
type Sign struct {
	Key   string        `key:"key" help:"The signing key file; it is created if missing, and is the same for all replicas. Without it the server signs nothing. Keep it apart from the store: with both, a log can be rewritten."`
	Every time.Duration `key:"every" min:"1s" help:"How often new records are signed. Unsigned records can be removed unnoticed."`
	Dir   string        `key:"dir" help:"A directory to which each checkpoint is also written. Users who can write to the store should not be able to write to it. A log that does not extend the checkpoints there is never signed. It must exist; replicas need a shared volume."`
}

// Check configures periodic checks.
type Check struct {
	Every time.Duration `key:"every" min:"0s" help:"Interval, counted from the end of the last check; 0 means never. A check reads every log and every stored run."`

	ReceiptAfter time.Duration `key:"receiptAfter" min:"1s" help:"How long after an approval the receipt of an external agent may take. After that it is reported as approved and not run, if the agent sends receipts or its request asked for one."`
}

// Limits bounds what callers may use.
type Limits struct {
	Body         int64   `key:"body" min:"1024" help:"Maximum size of a request body in bytes."`
	Rate         float64 `key:"rate" min:"0.001" help:"Requests per second of one caller in the long run."`
	Burst        int     `key:"burst" min:"1" help:"Requests of one caller at once."`
	InFlight     int     `key:"inFlight" min:"1" help:"Requests in flight, without event streams."`
	Concurrency  int     `key:"concurrency" min:"0" max:"1000000" help:"Requests that execute at the same time. Others wait briefly or are rejected. 0 means 32 per core."`
	Streams      int     `key:"streams" min:"1" help:"Open event streams."`
	IdleConns    int     `key:"idleConns" min:"1" help:"Idle anonymous connections, at most a quarter of the process's file limit; known clients have twice as many. A new connection evicts the one that has been idle longest."`
	OpenRequests int     `key:"openRequests" min:"1" help:"Open requests of an account before it cannot start more runs."`
	ActiveRuns   int     `key:"activeRuns" min:"1" help:"Ready or running runs of an account before it cannot start more."`

	MessageRate  float64 `key:"messageRate" min:"0.001" help:"Messages per second of one conversation in the long run; one user may send five times as many over all conversations."`
	MessageBurst int     `key:"messageBurst" min:"1" help:"Messages of one conversation at once, and five times as many of one user."`

	RequestsPerAgent int `key:"requestsPerAgent" min:"0" help:"Requests that one agent may create in an hour; 0 means no limit. All servers of a store share the count."`

	BodyTimeout  time.Duration `key:"bodyTimeout" min:"1ms" help:"Timeout for reading a request body."`
	WriteTimeout time.Duration `key:"writeTimeout" min:"1ms" help:"How long a client may take to read sent data before it is disconnected."`
	Heartbeat    time.Duration `key:"heartbeat" min:"1s" help:"Interval of keep-alive comments in event streams. Keep it below the idle timeout of proxies, and below one minute, after which Fermata's clients reconnect."`
	AuthRecheck  time.Duration `key:"authRecheck" min:"1s" help:"How often the server checks during an event stream that the client is still authorized."`
}

// Webhooks configures the delivery of answers.
type Webhooks struct {
	Secrets     []Secret `key:"secrets" help:"Secrets that sign webhooks, whsec_…, the newest first. A receiver that can verify a signature can also create one, so each account should have its own: \"acme: whsec_…\" is for the account acme only; one without an account is for all that have none. Better in a file or in the environment."`
	SecretsFile string   `key:"secretsFile" help:"A file that contains the secrets, one per line, instead of secrets."`
	Allow       []string `key:"allow" help:"Hosts and prefixes (10.1.0.0/16) that webhooks may call although they are not public."`
}

// Providers configures agents that other programs run.
type Providers struct {
	LangGraph LangGraph `key:"langgraph" help:"A LangGraph server. Its assistants are the graphs langgraph:NAME."`
	Claude    Claude    `key:"claude" help:"Agents of the Claude CLI, which the operator installs from npm."`
}

// LangGraph configures a LangGraph server.
type LangGraph struct {
	URL        string   `key:"url" help:"The address of the server: http://127.0.0.1:2024. Without it there are no such graphs."`
	APIKey     Secret   `key:"apiKey" help:"The key that is sent in the header X-Api-Key, if the server needs one. Better in a file or in the environment."`
	APIKeyFile string   `key:"apiKeyFile" help:"A file that contains the key, instead of apiKey."`
	Assistants []string `key:"assistants" help:"The assistants that can be run, by the name of their graph: content_review. NAME=ID gives an assistant with this id another name."`
	GrantField string   `key:"grantField" help:"The field of the state that gets the value granted when a person lets a run continue at a breakpoint."`
	Approver   string   `key:"approverField" help:"The field of the state that gets the name of that person."`
}

// Metrics configures the metrics listener.
type Metrics struct {
	Addr string `key:"addr" help:"HOST:PORT of a separate listener for /metrics, /healthz and /readyz, so that it can be kept private; off disables it. If the default address is in use, the server logs a warning and runs without it."`
}

// Off disables an address.
const Off = "off"

// Tracing configures OpenTelemetry.
type Tracing struct {
	Endpoint    string   `key:"endpoint" help:"The URL of an OpenTelemetry collector with OTLP over HTTP, for example http://collector:4318/v1/traces; tracing is off without it."`
	Headers     []Secret `key:"headers" help:"Headers to send, for example \"Authorization: Bearer …\". Better in a file or in the environment."`
	HeadersFile string   `key:"headersFile" help:"A file that contains the headers, one per line, instead of headers."`
	Sample      float64  `key:"sample" min:"0" help:"The share of new traces to sample, 0 to 1. Traces of callers are sampled if the caller samples them."`
	Service     string   `key:"service" help:"The service name in traces."`
}

// Log configures logging.
type Log struct {
	Format string `key:"format" enum:"text,json" help:"text or json."`
	Level  string `key:"level" enum:"debug,info,warn,error" help:"debug, info, warn or error."`
}

// Default returns the default configuration.
func Default() *Config {
	return &Config{
		Listen:    Listen{Addr: "127.0.0.1:8080", TrustedProxies: []string{"127.0.0.0/8", "::1/128"}, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, DrainTimeout: 20 * time.Second},
		Store:     Store{URL: "sqlite:fermata.db", Migrate: true, Schema: "fermata", MaxConns: 10, Timeout: 30 * time.Second, LockTimeout: 2 * time.Second},
		Auth:      Auth{Session: Session{Lifetime: 8 * time.Hour, IdleTimeout: 30 * time.Minute}, OIDC: OIDC{GroupsClaim: "groups", PrincipalClaim: "sub"}},
		Runs:      Runs{Timeout: 24 * time.Hour, Workers: 4, Lease: 15 * time.Second, SaveDelay: 25 * time.Millisecond, Wait: 5 * time.Second, MaxAttempts: 25},
		Desk:      Desk{KeepRulings: true},
		Channels:  Channels{Email: Email{Security: "starttls", LinkLifetime: 24 * time.Hour}},
		Audit:     Audit{Sign: Sign{Every: time.Hour}, Check: Check{Every: time.Hour, ReceiptAfter: 24 * time.Hour}},
		Limits:    Limits{Body: 2 << 20, Rate: 50, Burst: 100, InFlight: 512, Streams: 20000, IdleConns: 5000, OpenRequests: 10000, ActiveRuns: 1000, MessageRate: 1, MessageBurst: 20, BodyTimeout: 15 * time.Second, WriteTimeout: 10 * time.Second, Heartbeat: 15 * time.Second, AuthRecheck: time.Minute},
		Providers: Providers{Claude: Claude{Command: "claude", Processes: 4}},
		Metrics:   Metrics{Addr: "127.0.0.1:9464"},
		Tracing:   Tracing{Sample: 1, Service: "fermata"},
		Log:       Log{Format: "text", Level: "info"},
	}
}

// From returns the source of a key's value: a file with its line, a variable, a flag; "" if it is
// the default.
func (c *Config) From(key string) string { return c.from[key] }

// Secret is a value that is hidden when printed, logged or encoded as JSON. Reveal returns the
// value.
type Secret string

const redacted = "(secret)"

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the value.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the value.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }

// Pair splits a header, "Name: value".
func (s Secret) Pair() (name, value string) {
	name, value, _ = strings.Cut(string(s), ":")
	return strings.TrimSpace(name), strings.TrimSpace(value)
}

// Webhook splits a webhook secret, "whsec_…" or "ACCOUNT: whsec_…". An account may contain colons,
// a secret does not.
func (s Secret) Webhook() (account, secret string) {
	last := strings.LastIndex(string(s), ":")
	return strings.TrimSpace(string(s[:max(last, 0)])), strings.TrimSpace(string(s[last+1:]))
}
