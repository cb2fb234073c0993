package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/golden"
)

// load writes a file and loads it.
func load(t *testing.T, text string, environ ...string) (*Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fermata.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(Source{File: file, Environ: environ})
}

// mistakesOf returns the lines of the error.
func mistakesOf(t *testing.T, err error) []string {
	t.Helper()
	invalid, ok := errors.AsType[*InvalidError](err)
	if !ok {
		t.Fatalf("no InvalidError: %v", err)
	}
	return strings.Split(invalid.Error(), "\n")
}

func TestExample_HasEveryKeyWithItsDefaultAndLoads(t *testing.T) {
	const path = "../../deploy/fermata.yaml"
	golden.Compare(t, path, Example())
	c, err := Load(Source{File: path})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range Keys() {
		if c.From(key) == "" {
			t.Errorf("the example does not have %s", key)
		}
	}
	c.from = nil
	// An empty list equals nil.
	c.Channels.PagerDuty.RoutingKeyFiles, c.Channels.Alertmanager.Labels, c.Channels.Teams.WebhookFiles = nil, nil, nil
	c.Providers.LangGraph.Assistants = nil
	c.Webhooks.Secrets, c.Webhooks.Allow, c.Auth.OIDC.Scopes, c.Auth.OIDC.Roles, c.Auth.OIDC.ACR, c.Tracing.Headers, c.Channels.Slack.Approvers, c.Channels.WebPush.Allow, c.OnCall = nil, nil, nil, nil, nil, nil, nil, nil, nil
	c.Providers.Claude.Env, c.Assistants = nil, nil
	if !reflect.DeepEqual(c, Default()) {
		t.Errorf("the example has\n%+v, the defaults are\n%+v", c, Default())
	}
}

func TestExample_EveryKeyHasHelp(t *testing.T) {
	var walk func(setting)
	walk = func(s setting) {
		if s.path != "" && s.tag.Get("help") == "" {
			t.Errorf("%s has no help", s.path)
		}
		for _, part := range s.children {
			walk(part)
		}
	}
	walk(settings(Default()))
}

func TestFile_SetsValues(t *testing.T) {
	c, err := load(t, `
listen: {addr: ":9000", readTimeout: 1m30s}
store:
  url: postgres://ann:pw@db/fermata
runs: {retention: 30d, timeout: 0}
limits: {rate: 2.5, body: 4096}
webhooks: {secrets: [whsec_a, whsec_b], allow: ["10.0.0.0/8"]}
log: {format: json}
`)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case c.Listen.Addr != ":9000", c.Listen.ReadTimeout != 90*time.Second, c.Store.URL.Reveal() != "postgres://ann:pw@db/fermata",
		c.Runs.Retention != 30*24*time.Hour, c.Runs.Timeout != 0, c.Limits.Rate != 2.5, c.Limits.Body != 4096,
		!reflect.DeepEqual(c.Webhooks.Secrets, []Secret{"whsec_a", "whsec_b"}), c.Webhooks.Allow[0] != "10.0.0.0/8", c.Log.Format != "json":
		t.Errorf("%+v", c)
	}
	if c.Listen.IdleTimeout != Default().Listen.IdleTimeout {
		t.Error("an omitted value is not the default")
	}
}

func TestFile_MistakesHaveLineNumbers(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"assistant without server": {"providers:\n  langgraph:\n    assistants: [a]\n", "fermata.yaml:3: providers.langgraph.assistants: url is missing"},
		"address with a password":  {"providers: {langgraph: {url: \"http://u:pw@host\"}}\n", "fermata.yaml:1: providers.langgraph.url: it is not an http or https URL without a query and a user"},
		"assistant without name":   {"providers: {langgraph: {url: \"http://host\", assistants: [=x]}}\n", "fermata.yaml:1: providers.langgraph.assistants: \"=x\" is not NAME or NAME=ID"},
		"variable without a value": {"providers:\n  claude:\n    env: [NAME]\n", "fermata.yaml:3: providers.claude.env: a variable must be NAME=value"},
		"misspelt":                 {"limits:\n  brust: 3\n", `fermata.yaml:2: limits.brust: unknown key; did you mean "limits.burst"?`},
		"misspelt section":         {"\n\nlistn:\n  addr: :80\n", `fermata.yaml:3: listn: unknown key; did you mean "listen"?`},
		"in the wrong place":       {"retention: 30d\n", `fermata.yaml:1: retention: unknown key; did you mean "runs.retention"?`},
		"other case":               {"log:\n  Format: json\n", `fermata.yaml:2: log.Format: unknown key; did you mean "log.format"?`},
		"like nothing":             {"qqqqqqqqqqqq: 1\n", "fermata.yaml:1: qqqqqqqqqqqq: unknown key"},
		"twice":                    {"log:\n  level: info\n  level: warn\n", "fermata.yaml:3: log.level: is repeated, first in line 2"},
		"section twice":            {"log: {level: info}\nlog: {level: warn}\n", "fermata.yaml:2: log: is repeated, first in line 1"},
		"not of the enum":          {"log:\n  level: wran\n", `fermata.yaml:2: log.level: "wran" is not one of debug, info, warn, error; did you mean "warn"?`},
		"no number":                {"limits: {burst: many}\n", `fermata.yaml:1: limits.burst: "many" is not an integer`},
		"no unit":                  {"runs: {wait: 5}\n", `fermata.yaml:1: runs.wait: "5" is not a duration with a unit, such as 90s, 24h or 30d`},
		"too small":                {"runs: {workers: 0}\n", "fermata.yaml:1: runs.workers: 0 is less than 1"},
		"negative":                 {"runs: {retention: -1h}\n", "fermata.yaml:1: runs.retention: -1h is less than 0s"},
		"more workers than memory": {"runs: {workers: 9223372036854775807}\n", "fermata.yaml:1: runs.workers: 9223372036854775807 is more than 10000"},
		"concurrency overflow":     {"limits: {concurrency: 9223372036854775807}\n", "fermata.yaml:1: limits.concurrency: 9223372036854775807 is more than 1000000"},
		"no rate":                  {"limits: {rate: .nan}\n", `fermata.yaml:1: limits.rate: ".nan" is not a number`},
		"another no":               {"store: {migrate: no}\n", `fermata.yaml:1: store.migrate: "no" is not true or false`},
		"no value":                 {"listen:\n  addr:\n", `fermata.yaml:2: listen.addr: the value is missing; write "" for an empty one`},
		"a section for a key":      {"listen:\n  addr: {a: b}\n", "fermata.yaml:2: listen.addr: expected a single value"},
		"a key for a section":      {"listen: :80\n", "fermata.yaml:1: listen: expected a mapping of keys"},
		"no list":                  {"webhooks: {allow: a}\n", "fermata.yaml:1: webhooks.allow: expected a list, for example [a, b]"},
		"merged":                   {"a: &a {addr: ':80'}\nlisten: {<<: *a}\n", "fermata.yaml:2: listen.<<: unknown key"},
		"two documents":            {"log: {level: info}\n---\nlog: {level: info}\n", "fermata.yaml:2: a second document begins here; only one is allowed"},
		"no YAML":                  {"log:\n\tlevel: info\n", "fermata.yaml:2: invalid YAML: found character that cannot start any token"},
		"no address":               {"listen:\n  addr: localhost\n", `fermata.yaml:2: listen.addr: "localhost" is not HOST:PORT`},
		"half a certificate":       {"listen: {tls: {certFile: a.pem}}\n", "fermata.yaml:1: listen.tls.certFile: keyFile is missing: set both or none"},
		"metrics on the main":      {"listen: {addr: ':80'}\nmetrics: {addr: ':80'}\n", "fermata.yaml:2: metrics.addr: must differ from the address of the server"},
		"no collector":             {"tracing: {endpoint: 'collector:4318'}\n", `fermata.yaml:1: tracing.endpoint: "collector:4318" is not an http or https URL`},
		"more than all":            {"tracing: {sample: 2}\n", "fermata.yaml:1: tracing.sample: 2 is more than 1"},
		"no header":                {"tracing: {headers: [token]}\n", `fermata.yaml:1: tracing.headers: a header must be "Name: value"`},
		"proxy without a mask":     {"listen: {trustedProxies: [10.0.0.1]}\n", `fermata.yaml:1: listen.trustedProxies: "10.0.0.1" is not a network, such as 10.0.3.0/24`},
		"no secret":                {"webhooks: {secrets: [hush]}\n", "fermata.yaml:1: webhooks.secrets: a secret must begin with whsec_"},
	} {
		_, err := load(t, c.text)
		if lines := mistakesOf(t, err); !contains(lines, c.want) {
			t.Errorf("%s: %q is not among\n%s", name, c.want, strings.Join(lines, "\n"))
		}
	}
}

const idp = "auth:\n  oidc:\n    issuer: https://idp\n    clientID: fermata\n    redirectURL: https://f/signin/callback\n    account: acme\n"

func TestRoles_OfGroups(t *testing.T) {
	want := Roles{"reviewers": {"approver"}, "platform": {"admin", "auditor"}}
	c, err := load(t, idp+"    roles: {reviewers: approver, platform: [admin, auditor]}\n")
	if err != nil || !reflect.DeepEqual(c.Auth.OIDC.Roles, want) {
		t.Errorf("%v, %v", c, err)
	}
	c, err = load(t, idp, `FERMATA_AUTH_OIDC_ROLES={"reviewers":"approver","platform":["admin","auditor"]}`)
	if err != nil || !reflect.DeepEqual(c.Auth.OIDC.Roles, want) {
		t.Errorf("from the environment: %v, %v", c, err)
	}
	for text, want := range map[string]string{
		"    roles: {a: approvr}\n":         `fermata.yaml:7: auth.oidc.roles.a: "approvr" is not one of agent, approver, auditor, user, admin; did you mean "approver"?`,
		"    roles: [a]\n":                  "fermata.yaml:7: auth.oidc.roles: expected roles by group, for example {group: role}",
		"    roles: {a: admin, a: admin}\n": `fermata.yaml:7: auth.oidc.roles.a: is repeated, first in line 7`,
		"    roles: {}\n":                   "fermata.yaml:7: auth.oidc.roles: is empty, so no sign-in could succeed",
		"    accountClaim: x\n":             "fermata.yaml:6: auth.oidc.account: set either account or accountClaim, not both",
		"\n  session: {lifetime: 1s}\n":     "fermata.yaml:8: auth.session.lifetime: 1s is less than 1m",
		"\n    audience: x\n    isuer: a\n": `fermata.yaml:9: auth.oidc.isuer: unknown key; did you mean "auth.oidc.issuer"?`,
	} {
		_, err := load(t, idp+text)
		if lines := mistakesOf(t, err); !contains(lines, want) {
			t.Errorf("%q is not among\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if _, err := load(t, "auth: {oidc: {clientID: x}}"); err == nil || !strings.Contains(err.Error(), "issuer is missing") {
		t.Errorf("no issuer: %v", err)
	}
}

// The classes of a provider can be configured.
func TestClasses_OfAuthentication(t *testing.T) {
	const roles = "    roles: {a: approver}\n"
	want := Classes{"urn:example:gold": "sso_mfa", "2": "hardware"}
	c, err := load(t, idp+roles+"    acr: {\"urn:example:gold\": sso_mfa, 2: hardware}\n")
	if err != nil || !reflect.DeepEqual(c.Auth.OIDC.ACR, want) {
		t.Errorf("%v, %v", c, err)
	}
	c, err = load(t, idp+roles, `FERMATA_AUTH_OIDC_ACR={"urn:example:gold":"sso_mfa","2":"hardware"}`)
	if err != nil || !reflect.DeepEqual(c.Auth.OIDC.ACR, want) {
		t.Errorf("from the environment: %v, %v", c, err)
	}
	for text, want := range map[string]string{
		"    acr: {a: mfa}\n":         `fermata.yaml:8: auth.oidc.acr.a: "mfa" is not one of sso, sso_mfa, hardware`,
		"    acr: {a: sso-mfa}\n":     `fermata.yaml:8: auth.oidc.acr.a: "sso-mfa" is not one of sso, sso_mfa, hardware; did you mean "sso_mfa"?`,
		"    acr: [a]\n":              "fermata.yaml:8: auth.oidc.acr: expected strengths by class, for example {class: sso_mfa}",
		"    acr: {a: sso, a: sso}\n": `fermata.yaml:8: auth.oidc.acr.a: is repeated, first in line 8`,
		"    acr: {a: [sso]}\n":       `fermata.yaml:8: auth.oidc.acr.a: expected a single value`,
	} {
		_, err := load(t, idp+roles+text)
		if lines := mistakesOf(t, err); !contains(lines, want) {
			t.Errorf("%q is not among\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if _, err := load(t, "auth: {oidc: {acr: {a: sso}}}"); err == nil || !strings.Contains(err.Error(), "auth.oidc.acr: issuer is missing") {
		t.Errorf("no issuer: %v", err)
	}
}

func contains(lines []string, want string) bool {
	for _, line := range lines {
		if line == want {
			return true
		}
	}
	return false
}

func TestFile_AllMistakesAreReported(t *testing.T) {
	_, err := load(t, "lisen: {}\nlog:\n  level: loud\n", "FERMATA_LIMITS_BURST=x")
	if lines := mistakesOf(t, err); len(lines) != 3 {
		t.Errorf("%q", lines)
	}
}

func TestFile_EmptyFileIsValid(t *testing.T) {
	for _, text := range []string{"", "# only a comment\n", "listen:\n"} {
		if _, err := load(t, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestLoad_LaterSourceOverrides(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte("listen:\n  addr: :1\nlog:\n  level: warn\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	from := Source{File: file, Environ: []string{"FERMATA_LISTEN_ADDR=:2", "FERMATA_LOG_FORMAT=json", "FERMATA_LOG_LEVEL="}, Flags: map[string]string{"listen.addr": ":3", "store.url": ""}}
	c, err := Load(from)
	if err != nil || c.Listen.Addr != ":3" || c.Log.Format != "json" || c.Log.Level != "warn" || c.Store.URL != Default().Store.URL {
		t.Errorf("%+v, %v", c, err)
	}
	for key, want := range map[string]string{"listen.addr": "the command line", "log.format": "FERMATA_LOG_FORMAT", "log.level": "f.yaml:4", "runs.wait": ""} {
		if got := c.From(key); got != want {
			t.Errorf("%s is from %q", key, got)
		}
	}
}

// Every key has its own variable.
func TestEnv_OverridesEveryKey(t *testing.T) {
	seen := make(map[string]string)
	root := settings(Default())
	for _, s := range root.all() {
		name := env(s.path)
		if other := seen[name]; other != "" {
			t.Errorf("%s and %s are both %s", other, s.path, name)
		}
		seen[name] = s.path
		text := map[reflect.Kind]string{reflect.String: "postgres://x", reflect.Slice: "whsec_a, whsec_b", reflect.Map: "{a: b}", reflect.Bool: "false", reflect.Int: "77", reflect.Int64: "7777", reflect.Float64: "7.5"}[s.value.Kind()]
		if s.value.Type() == reflect.TypeFor[time.Duration]() {
			text = "77s"
		}
		if words := s.tag.Get("enum"); words != "" {
			last := words[strings.LastIndexByte(words, ',')+1:]
			text = map[reflect.Kind]string{reflect.String: last, reflect.Map: "{a: " + last + "}"}[s.value.Kind()]
		}
		switch s.value.Type() {
		case reflect.TypeFor[OnCall]():
			text = "{db: {rota: [ann], start: 2026-01-05 09:00}}"
		case reflect.TypeFor[Assistants]():
			text = `[{id: a, model: {provider: openai, model: m, baseURL: "https://a.example.com/v1"}, instructions: b}]`
		}
		c := Default()
		c.from = make(map[string]string)
		var wrong mistakes
		c.readEnv([]string{name + "=" + text}, &wrong)
		if len(wrong) > 0 || c.From(s.path) != name || reflect.DeepEqual(c.Listen, Default().Listen) && strings.HasPrefix(s.path, "listen.") {
			t.Errorf("%s: %v", name, wrong)
		}
		c.from = nil
		if reflect.DeepEqual(c, Default()) {
			t.Errorf("%s=%s changes nothing", name, text)
		}
	}
	for key, want := range map[string]string{"listen.readHeaderTimeout": "FERMATA_LISTEN_READ_HEADER_TIMEOUT", "store.urlFile": "FERMATA_STORE_URL_FILE", "auth.oidc.redirectURL": "FERMATA_AUTH_OIDC_REDIRECT_URL", "listen.tls.certFile": "FERMATA_LISTEN_TLS_CERT_FILE"} {
		if got := env(key); got != want {
			t.Errorf("%s is %s", key, got)
		}
	}
}

func TestEnv_MistakesNameTheVariable(t *testing.T) {
	_, err := Load(Source{Environ: []string{"FERMATA_LIMITS_IN_FLIGHT=lots"}})
	if lines := mistakesOf(t, err); lines[0] != `FERMATA_LIMITS_IN_FLIGHT: limits.inFlight: "lots" is not an integer` {
		t.Errorf("%q", lines)
	}
}

// Kubernetes sets FERMATA_PORT and more for a service of that name: these must not stop the server,
// nor have an effect.
func TestEnv_SimilarUnknownVariableIsAWarning(t *testing.T) {
	c, err := Load(Source{Environ: []string{"FERMATA_LISTEN_ADR=:1", "FERMATA_PORT=tcp://10.0.0.1:80", "FERMATA_SERVICE_HOST=10.0.0.1", "FERMATA_TOKEN=x", "FERMATA_URL=http://x"}})
	if err != nil || len(c.Warnings) != 1 || c.Warnings[0] != "FERMATA_LISTEN_ADR is not a setting; did you mean FERMATA_LISTEN_ADDR?" {
		t.Errorf("%v, %v", c, err)
	}
}

func TestSecrets_MayBeInFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	dsn, hooks := write("dsn", "postgres://ann:pw@db/f\n"), write("hooks", "whsec_new\n\nwhsec_old\n")
	c, err := load(t, "store: {urlFile: "+dsn+"}\n", "FERMATA_WEBHOOKS_SECRETS_FILE="+hooks)
	if err != nil || c.Store.URL.Reveal() != "postgres://ann:pw@db/f" || !reflect.DeepEqual(c.Webhooks.Secrets, []Secret{"whsec_new", "whsec_old"}) {
		t.Errorf("%v, %v", c, err)
	}
	// Between a value and a file with it, the later source overrides.
	c, err = load(t, "store: {url: 'sqlite:x'}\n", "FERMATA_STORE_URL_FILE="+dsn)
	if err != nil || c.Store.URL.Reveal() != "postgres://ann:pw@db/f" {
		t.Errorf("a value in the file, a reference in the environment: %v, %v", c, err)
	}
	c, err = load(t, "store: {urlFile: "+dsn+"}\n", "FERMATA_STORE_URL=sqlite:x")
	if err != nil || c.Store.URL.Reveal() != "sqlite:x" {
		t.Errorf("a reference in the file, a value in the environment: %v, %v", c, err)
	}
	for name, text := range map[string]string{
		"both":  "store:\n  url: sqlite:x\n  urlFile: " + dsn + "\n",
		"gone":  "store:\n\n  urlFile: " + filepath.Join(dir, "gone") + "\n",
		"empty": "store:\n\n  urlFile: " + write("empty", "\n") + "\n",
	} {
		_, err := load(t, text)
		if lines := mistakesOf(t, err); !strings.HasPrefix(lines[0], "fermata.yaml:3: store.urlFile: ") || len(lines) != 1 {
			t.Errorf("%s: %q", name, lines)
		}
	}
}

func TestI7_SecretsAreNotShown(t *testing.T) {
	c, err := load(t, "store: {url: 'postgres://ann:hush@db/f'}\nwebhooks: {secrets: [whsec_hush]}\n")
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("settings", "store", c.Store, "url", c.Store.URL, "all", c)
	shown := fmt.Sprintf("%v %+v %#v %s %q %s %s", c, c, c, c.Store.URL, c.Store.URL, asJSON, log.String())
	if strings.Contains(shown, "hush") {
		t.Error(shown)
	}
	// Nor in errors.
	for _, text := range []string{"store: {url: 'mysql://ann:hush@db'}", "store: {url: [hush]}", "webhooks: {secrets: hush}", "webhooks: {secrets: [hush]}"} {
		if _, err := load(t, text); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The error names the path, because FERMATA_CONFIG may be relative.
func TestLoad_MissingFileNamesThePath(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone", "fermata.yaml")
	for what, from := range map[string]Source{
		"the settings": {File: gone},
		"a secret":     {Flags: map[string]string{"store.urlFile": gone}},
	} {
		if _, err := Load(from); err == nil || !strings.Contains(err.Error(), gone+": ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
