package config

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

const validAssistant = `assistants:
- id: support
  model: {provider: openai, model: gpt-5-mini, apiKeyFile: openai.key}
  instructions: You help customers.
  tools:
  - name: refund
    description: Refunds an order.
    effect: write
    url: https://shop.example.com/orders/{order}/refunds
    parameters: {type: object, required: [order], properties: {order: {type: string}, euros: {type: number}}}
    headers: {Accept: application/json}
    headerFiles: {Authorization: shop.token}
`

func TestAssistants_AreReadWithDefaultsAndSecrets(t *testing.T) {
	secretFiles(t, map[string]string{"openai.key": "sk-1\n", "shop.token": "Bearer t0\n", "writer.md": "You write.\n"})
	c, err := load(t, validAssistant+`- id: writer
  title: Writer
  model: {provider: anthropic, baseURL: "http://127.0.0.1:9", model: m}
  instructionsFile: writer.md
  limits: {steps: 3, tokens: 9, time: 1m}
  allow: [127.0.0.1]
  tools:
  - {name: list, description: Lists orders., effect: read, url: "http://127.0.0.1:9/orders", timeout: 1s, maxResponse: 10}
`)
	if err != nil {
		t.Fatal(err)
	}
	support, writer := c.Assistants[0], c.Assistants[1]
	refund, list := support.Tools[0], writer.Tools[0]
	switch {
	case support.Title != "support", support.Model.APIKey.Reveal() != "sk-1", support.Limits != AssistantLimits{20, 200_000, AssistantLimits{}.Time + support.Limits.Time}, time.Duration(support.Limits.Time) != 10*time.Minute:
		t.Errorf("%+v", support)
	case refund.Method != http.MethodPost, time.Duration(refund.Timeout) != 30*time.Second, refund.MaxResponse != 65536, refund.Secrets["Authorization"].Reveal() != "Bearer t0",
		string(refund.Schema) != `{"additionalProperties":false,"properties":{"euros":{"type":"number"},"order":{"type":"string"}},"required":["order"],"type":"object"}`:
		t.Errorf("%+v", refund)
	case writer.Instructions != "You write.\n", writer.Limits.Steps != 3, writer.Limits.Tokens != 9, time.Duration(writer.Limits.Time) != time.Minute:
		t.Errorf("%+v", writer)
	case list.Method != http.MethodGet, string(list.Schema) != `{"additionalProperties":false,"type":"object"}`, time.Duration(list.Timeout) != time.Second, list.MaxResponse != 10:
		t.Errorf("%+v", list)
	}
	for _, v := range c.Effective() {
		if v.Key == "assistants" && (v.Value != "[support, writer]" || v.From != "fermata.yaml:2") {
			t.Errorf("%+v", v)
		}
	}
	if text := fmt.Sprintf("%+v %#v", c.Assistants, c.Assistants); strings.Contains(text, "sk-1") || strings.Contains(text, "t0") {
		t.Errorf("a secret is printed: %s", text)
	}
}

// Arguments that the parameters do not name are refused, unless the configuration says otherwise.
func TestAssistants_ParametersAreClosed(t *testing.T) {
	secretFiles(t, map[string]string{"openai.key": "sk-1", "shop.token": "Bearer t0"})
	for key, want := range map[string]string{
		"":                               `{"additionalProperties":false,"properties"`,
		"additionalProperties: true, ":   `{"additionalProperties":true,"properties"`,
		"unevaluatedProperties: false, ": `{"properties"`,
	} {
		c, err := load(t, strings.Replace(validAssistant, "parameters: {", "parameters: {"+key, 1))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(c.Assistants[0].Tools[0].Schema); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

func TestAssistants_MistakesNameLineAndField(t *testing.T) {
	secretFiles(t, map[string]string{"openai.key": "sk-1", "shop.token": "Bearer t0", "empty": "", "broken": "a\nb"})
	for name, c := range map[string]struct{ old, new, want string }{
		"no list":              {validAssistant, "assistants: {id: a}\n", "fermata.yaml:1: assistants: expected a list of assistants, each with id, model, instructions and tools"},
		"no assistant":         {validAssistant, "assistants: [a]\n", "fermata.yaml:1: assistants[0]: expected a mapping of keys"},
		"key in the file":      {"apiKeyFile: openai.key", "apiKey: sk-1", `fermata.yaml:3: assistants[0].model.apiKey: unknown key; known: apiKeyFile, baseURL, maxTokens, model, provider, timeout`},
		"unknown key of tool":  {"    effect: write\n", "    effect: write\n    metod: PUT\n", `fermata.yaml:9: assistants[0].tools[0].metod: unknown key; did you mean "method"?`},
		"bad id":               {"id: support", "id: Support Desk", `fermata.yaml:2: assistants[0].id: "Support Desk" is not an id: use 1 to 64 lower-case letters, digits, _ and -`},
		"same id":              {"assistants:\n", "assistants:\n- {id: support, model: {provider: openai, model: a, apiKeyFile: openai.key}, instructions: a}\n", `fermata.yaml:3: assistants[1].id: there are two assistants "support"`},
		"no instructions":      {"  instructions: You help customers.\n", "", "fermata.yaml:2: assistants[0]: instructions or instructionsFile is missing"},
		"both instructions":    {"  tools:\n", "  instructionsFile: a.md\n  tools:\n", "fermata.yaml:5: assistants[0].instructionsFile: instructions is also set: set only one of them"},
		"no model":             {"  model: {provider: openai, model: gpt-5-mini, apiKeyFile: openai.key}\n", "", "fermata.yaml:2: assistants[0]: model is missing: it has provider, model and apiKeyFile"},
		"unknown provider":     {"provider: openai", "provider: opnai", `fermata.yaml:3: assistants[0].model.provider: "opnai" is not one of openai, anthropic; did you mean "openai"?`},
		"no key":               {", apiKeyFile: openai.key", "", "fermata.yaml:3: assistants[0].model: apiKeyFile is missing; only a server at baseURL needs no key"},
		"no key file":          {"openai.key", "none.key", "fermata.yaml:3: assistants[0].model.apiKeyFile: none.key: no such file or directory"},
		"empty key file":       {"openai.key", "empty", "fermata.yaml:3: assistants[0].model.apiKeyFile: empty: the file is empty"},
		"private model":        {"model: gpt-5-mini", `baseURL: "https://10.0.0.1/v1", model: a`, "fermata.yaml:3: assistants[0].model.baseURL: the address is not public; allow lists hosts that are not public"},
		"negative limit":       {"  tools:\n", "  limits: {steps: -1}\n  tools:\n", "fermata.yaml:5: assistants[0].limits.steps: it is negative"},
		"bad host":             {"  tools:\n", "  allow: [\"http://a\"]\n  tools:\n", `fermata.yaml:5: assistants[0].allow: "http://a" is not a host name, address or prefix`},
		"no effect":            {"    effect: write\n", "", `fermata.yaml:6: assistants[0].tools[0]: "" is not one of read, write`},
		"write with GET":       {"    effect: write\n", "    effect: write\n    method: GET\n", `fermata.yaml:9: assistants[0].tools[0].method: for the effect write: "GET" is not one of POST, PUT, PATCH, DELETE; did you mean "PUT"?`},
		"preview of a read":    {"    effect: write\n", "    effect: read\n    preview: https://shop.example.com/preview\n", "fermata.yaml:9: assistants[0].tools[0].preview: a tool that reads has no preview"},
		"preview without host": {"    effect: write\n", "    effect: write\n    preview: /preview\n", "fermata.yaml:9: assistants[0].tools[0].preview: it is not a URL with a host; allow lists hosts that are not public"},
		"idempotent read":      {"    effect: write\n", "    effect: read\n    idempotent: true\n", "fermata.yaml:9: assistants[0].tools[0].idempotent: a tool that reads is always repeatable"},
		"private tool":         {"https://shop.example.com", "http://localhost", "fermata.yaml:9: assistants[0].tools[0].url: only https is allowed; allow lists hosts that are not public"},
		"placeholder of host":  {"shop.example.com", "{order}.example.com", "fermata.yaml:9: assistants[0].tools[0].url: only the path and the query may have placeholders"},
		"unknown placeholder":  {"{order}/refunds", "{id}/refunds", `fermata.yaml:9: assistants[0].tools[0].url: parameters has no "id"`},
		"parameter in query":   {"effect: write\n    url: https://shop.example.com/orders/{order}/refunds", "effect: read\n    url: https://shop.example.com/{order}?Euros=1", `fermata.yaml:9: assistants[0].tools[0].url: the query has "Euros", and so has parameters`},
		"optional in the URL":  {"required: [order], ", "", `fermata.yaml:9: assistants[0].tools[0].url: the parameter "order" is not in required`},
		"list in the URL":      {"order: {type: string}", "order: {type: array}", `fermata.yaml:9: assistants[0].tools[0].url: the type of the parameter "order" is not string, integer, number or boolean`},
		"no object":            {"{type: object, required", "{type: array, required", "fermata.yaml:10: assistants[0].tools[0].parameters: it is not a JSON Schema of an object: its type is not object"},
		"secret header":        {"Accept: application/json", "authorization: Bearer x", "fermata.yaml:11: assistants[0].tools[0].headers.authorization: it is a secret: put it into a file, and name the file in headerFiles"},
		"own header":           {"Accept: application/json", "Idempotency-Key: x", "fermata.yaml:11: assistants[0].tools[0].headers.Idempotency-Key: the server sets this header"},
		"broken header":        {"shop.token", "broken", "fermata.yaml:12: assistants[0].tools[0].headerFiles.Authorization: it is not a header"},
		"too much":             {"    effect: write\n", "    effect: write\n    maxResponse: 9999999\n", "fermata.yaml:9: assistants[0].tools[0].maxResponse: 9999999 is more than 1048576"},
		"two tools":            {"  - name: refund\n", "  - {name: refund, description: a, effect: read, url: \"https://a.example.com\"}\n  - name: refund\n", `fermata.yaml:7: assistants[0].tools[1].name: there are two tools "refund"`},
	} {
		_, err := load(t, strings.Replace(validAssistant, c.old, c.new, 1))
		if lines := mistakesOf(t, err); !contains(lines, c.want) {
			t.Errorf("%s: %q is not among\n%s", name, c.want, strings.Join(lines, "\n"))
		}
	}
}
