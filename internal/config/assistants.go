package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/outbound"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/internal/urltemplate"
	"github.com/fermata-go/fermata/internal/yamldoc"
)

// Assistants are models with tools that end users talk to.
type Assistants []Assistant

// Assistant is a model with instructions and tools.
type Assistant struct {
	// ID is the name in the API, and of its graph: inproc:ID.
	ID          string `yaml:"id"`
	Title       string `yaml:"title"`
	Description string `yaml:"description"`
	Model       Model  `yaml:"model"`
	// Instructions is the system message; InstructionsFile is a file that contains it.
	Instructions     string          `yaml:"instructions"`
	InstructionsFile string          `yaml:"instructionsFile"`
	Limits           AssistantLimits `yaml:"limits"`
	// Allow are hosts and prefixes that the assistant may call although they are not public.
	Allow []string        `yaml:"allow"`
	Tools []AssistantTool `yaml:"tools"`
}

// Model is a model of a service. The key is read from a file.
type Model struct {
	// Provider is openai, for all services with chat completions, or anthropic.
	Provider   string `yaml:"provider"`
	BaseURL    string `yaml:"baseURL"`
	Model      string `yaml:"model"`
	APIKeyFile string `yaml:"apiKeyFile"`
	// MaxTokens limits each answer. 0 means the limit of the adapter.
	MaxTokens int `yaml:"maxTokens"`
	// Timeout limits one call. Defaults to 5 minutes.
	Timeout timespan.Duration `yaml:"timeout"`

	APIKey Secret `yaml:"-"` // the content of the file
}

// AssistantLimits is what one message may use before an approver is asked.
type AssistantLimits struct {
	Steps  int               `yaml:"steps"`
	Tokens int               `yaml:"tokens"`
	Time   timespan.Duration `yaml:"time"`
}

// AssistantTool is an HTTP endpoint. The values of secret headers are read from files.
type AssistantTool struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	// Effect is read or write. A tool that writes is an action under the policy.
	Effect string `yaml:"effect"`
	// Method defaults to GET for read, and to POST for write.
	Method string `yaml:"method"`
	// URL has placeholders, such as https://shop.example.com/orders/{order}.
	URL string `yaml:"url"`
	// Parameters is a JSON Schema.
	Parameters  any               `yaml:"parameters"`
	Headers     map[string]string `yaml:"headers"`
	HeaderFiles map[string]string `yaml:"headerFiles"`
	// Timeout defaults to 30 seconds, MaxResponse to 64 KiB.
	Timeout     timespan.Duration `yaml:"timeout"`
	MaxResponse int               `yaml:"maxResponse"`
	// Idempotent says that the endpoint ignores a second call with the same Idempotency-Key.
	Idempotent bool `yaml:"idempotent"`
	// Preview is the URL that says what a call would change, for the approver.
	Preview string `yaml:"preview"`

	Schema  json.RawMessage   `yaml:"-"` // Parameters as JSON
	Secrets map[string]Secret `yaml:"-"` // the contents of HeaderFiles
}

const (
	defaultSteps        = 20
	defaultModelTokens  = 200_000
	defaultModelTime    = 10 * time.Minute
	defaultModelTimeout = 5 * time.Minute
	defaultToolTimeout  = 30 * time.Second
	defaultMaxResponse  = 64 << 10
	maxMaxResponse      = 1 << 20
)

func (*Assistants) expected() string {
	return "expected a list of assistants, each with id, model, instructions and tools"
}

// read reads the assistants, and the files that they name.
func (a *Assistants) read(n yamldoc.Node, _ []string) {
	*a = make(Assistants, 0)
	for i, item := range n.List() {
		next := readAssistant(item)
		if next.ID != "" && slices.ContainsFunc(*a, func(other Assistant) bool { return other.ID == next.ID }) {
			n.At(i, "id").Reportf("there are two assistants %q", next.ID)
		}
		*a = append(*a, next)
	}
}

// names lists the ids.
func (a Assistants) names() string {
	var names []string
	for _, one := range a {
		names = append(names, one.ID)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

var validAssistantID = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

func readAssistant(n yamldoc.Node) (a Assistant) {
	n.Decode(&a)
	if !n.IsMapping() {
		return a
	}
	if !validAssistantID.MatchString(a.ID) {
		n.At("id").Reportf("%q is not an id: use 1 to 64 lower-case letters, digits, _ and -", a.ID)
	}
	switch {
	case a.Instructions == "" && a.InstructionsFile == "":
		n.Reportf("instructions or instructionsFile is missing")
	case a.Instructions != "" && a.InstructionsFile != "":
		n.At("instructionsFile").Reportf("instructions is also set: set only one of them")
	case a.InstructionsFile != "":
		text, err := os.ReadFile(a.InstructionsFile)
		if err != nil {
			n.At("instructionsFile").Reportf("%s: %v", a.InstructionsFile, cause(err))
		}
		a.Instructions = string(text)
	}
	if a.Title == "" {
		a.Title = a.ID
	}
	client, err := outbound.NewClient(outbound.Config{Allow: a.Allow})
	if err != nil {
		n.At("allow").Reportf("%v", err)
		client, _ = outbound.NewClient(outbound.Config{})
	}
	a.Model.read(n.At("model"), client)
	a.Limits.read(n.At("limits"))
	for i := range a.Tools {
		t := &a.Tools[i]
		t.read(n.At("tools", i), client)
		if slices.ContainsFunc(a.Tools[:i], func(other AssistantTool) bool { return other.Name == t.Name && t.Name != "" }) {
			n.At("tools", i, "name").Reportf("there are two tools %q", t.Name)
		}
	}
	return a
}

// positive sets a number to its default if it is 0, and reports it if it is negative.
func positive[T int | timespan.Duration](n yamldoc.Node, key string, value *T, otherwise T) {
	switch {
	case *value < 0:
		n.At(key).Reportf("it is negative")
	case *value == 0:
		*value = otherwise
	}
}

func (m *Model) read(n yamldoc.Node, client *outbound.Client) {
	if !n.IsMapping() || m.Provider == "" && m.Model == "" {
		n.Reportf("model is missing: it has provider, model and apiKeyFile")
		return
	}
	if providers := []string{"openai", "anthropic"}; !slices.Contains(providers, m.Provider) {
		n.At("provider").Reportf("%s", yamldoc.NotOneOf(m.Provider, providers))
	}
	if m.Model == "" {
		n.Reportf("model is missing: the name of the model at the service")
	}
	positive(n, "timeout", &m.Timeout, timespan.Duration(defaultModelTimeout))
	positive(n, "maxTokens", &m.MaxTokens, 0)
	switch {
	case m.BaseURL != "":
		if u, err := client.ParseURL(m.BaseURL); err != nil {
			n.At("baseURL").Reportf("%v; allow lists hosts that are not public", err)
		} else if u.RawQuery != "" {
			n.At("baseURL").Reportf("it has a query")
		}
	case m.APIKeyFile == "":
		n.Reportf("apiKeyFile is missing; only a server at baseURL needs no key")
	}
	m.APIKey = readNamedSecret(n.At("apiKeyFile"), m.APIKeyFile)
}

// readNamedSecret reads a secret from a file, if one is named.
func readNamedSecret(n yamldoc.Node, file string) Secret {
	if file == "" {
		return ""
	}
	text, err := readSecret(file)
	if err != nil {
		n.Reportf("%s: %v", file, err)
	}
	return Secret(text)
}

func (l *AssistantLimits) read(n yamldoc.Node) {
	positive(n, "steps", &l.Steps, defaultSteps)
	positive(n, "tokens", &l.Tokens, defaultModelTokens)
	positive(n, "time", &l.Time, timespan.Duration(defaultModelTime))
}

var validToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// The methods of tools, by their effect; the first one is the default.
var toolMethods = map[string][]string{
	"read":  {http.MethodGet, http.MethodPost},
	"write": {http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
}

func (t *AssistantTool) read(n yamldoc.Node, client *outbound.Client) {
	if !n.IsMapping() {
		return
	}
	if !validToolName.MatchString(t.Name) {
		n.At("name").Reportf("%q is not the name of a tool: use 1 to 64 letters, digits, _ and -", t.Name)
	}
	if t.Description == "" {
		n.Reportf("description is missing: it tells the model when to call the tool")
	}
	switch methods := toolMethods[t.Effect]; {
	case methods == nil:
		n.At("effect").Reportf("%s", yamldoc.NotOneOf(t.Effect, []string{"read", "write"}))
	case t.Method == "":
		t.Method = methods[0]
	case !slices.Contains(methods, t.Method):
		n.At("method").Reportf("for the effect %s: %s", t.Effect, yamldoc.NotOneOf(t.Method, methods))
	}
	if t.Idempotent && t.Effect == "read" {
		n.At("idempotent").Reportf("a tool that reads is always repeatable")
	}
	positive(n, "timeout", &t.Timeout, timespan.Duration(defaultToolTimeout))
	positive(n, "maxResponse", &t.MaxResponse, defaultMaxResponse)
	if t.MaxResponse > maxMaxResponse {
		n.At("maxResponse").Reportf("%d is more than %d", t.MaxResponse, maxMaxResponse)
	}
	names := t.readParameters(n)
	checkURL(n.At("url"), t.URL, client, names)
	if t.Method == http.MethodGet || t.Method == http.MethodDelete {
		checkQuery(n.At("url"), t.URL, names)
	}
	switch {
	case t.Preview == "":
	case t.Effect == "read":
		n.At("preview").Reportf("a tool that reads has no preview")
	default:
		checkURL(n.At("preview"), t.Preview, client, names)
	}
	t.readHeaders(n)
}

// readParameters converts the schema to JSON, and closes it for arguments that it does not name,
// unless it says what may be in them. It returns the parameters by name; nil if there is a
// mistake.
func (t *AssistantTool) readParameters(n yamldoc.Node) (names map[string]parameter) {
	if t.Parameters == nil {
		t.Parameters = map[string]any{"type": "object"}
	}
	if object, ok := t.Parameters.(map[string]any); ok && object["additionalProperties"] == nil && object["unevaluatedProperties"] == nil {
		object["additionalProperties"] = false
	}
	var err error
	if t.Schema, err = json.Marshal(t.Parameters); err == nil {
		_, err = schema.Parse(t.Schema)
	}
	var object struct {
		Type       string
		Properties map[string]struct{ Type any }
		Required   []string
	}
	if err == nil {
		if err = json.Unmarshal(t.Schema, &object); err == nil && object.Type != "object" {
			err = fmt.Errorf("its type is not object")
		}
	}
	if err != nil {
		n.At("parameters").Reportf("it is not a JSON Schema of an object: %v", err)
		return nil
	}
	names = make(map[string]parameter)
	for name, property := range object.Properties {
		kind, _ := property.Type.(string)
		names[name] = parameter{kind, slices.Contains(object.Required, name)}
	}
	return names
}

// parameter is a parameter of a tool.
type parameter struct {
	kind     string
	required bool
}

// checkURL checks that a URL may be called, and that its placeholders have values.
func checkURL(n yamldoc.Node, text string, client *outbound.Client, names map[string]parameter) {
	template, err := urltemplate.Parse(text)
	if err != nil {
		n.Reportf("%v", err)
		return
	}
	if _, err := client.ParseURL(template.Sample()); err != nil {
		n.Reportf("%v; allow lists hosts that are not public", err)
	}
	for _, name := range template.Names() {
		of, known := names[name]
		switch {
		case names == nil: // reported
		case !known:
			n.Reportf("parameters has no %q", name)
		case !of.required:
			n.Reportf("the parameter %q is not in required", name)
		case !slices.Contains([]string{"string", "integer", "number", "boolean"}, of.kind):
			n.Reportf("the type of the parameter %q is not string, integer, number or boolean", name)
		}
	}
}

// checkQuery checks that no argument would collide with a part of the query.
func checkQuery(n yamldoc.Node, text string, names map[string]parameter) {
	template, err := urltemplate.Parse(text)
	if err != nil {
		return // reported
	}
	sample, err := url.Parse(template.Sample())
	if err != nil {
		return // reported
	}
	for _, fixed := range slices.Sorted(maps.Keys(sample.Query())) {
		for name := range names {
			if strings.EqualFold(name, fixed) && !slices.Contains(template.Names(), name) {
				n.Reportf("the query has %q, and so has parameters", fixed)
			}
		}
	}
}

// secretHeaders must not be in the configuration, and ownHeaders are set by the server.
var (
	secretHeaders = []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key"}
	ownHeaders    = []string{"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Idempotency-Key"}
)

func (t *AssistantTool) readHeaders(n yamldoc.Node) {
	t.Secrets = make(map[string]Secret)
	seen := make(map[string]bool)
	check := func(key, name, value string) {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !validHeader.MatchString(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			n.At(key, name).Reportf("it is not a header")
		case slices.Contains(ownHeaders, canonical):
			n.At(key, name).Reportf("the server sets this header")
		case seen[canonical]:
			n.At(key, name).Reportf("the header is also in headers, or repeated")
		}
		seen[canonical] = true
	}
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		check("headers", name, t.Headers[name])
		if slices.Contains(secretHeaders, http.CanonicalHeaderKey(name)) {
			n.At("headers", name).Reportf("it is a secret: put it into a file, and name the file in headerFiles")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.HeaderFiles)) {
		t.Secrets[name] = readNamedSecret(n.At("headerFiles", name), t.HeaderFiles[name])
		check("headerFiles", name, t.Secrets[name].Reveal())
	}
}

var validHeader = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
