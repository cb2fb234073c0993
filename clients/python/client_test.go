package python

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/testtier"
)

// document is the server's OpenAPI document; a test of the server compares it with the code.
const document = "../../internal/server/openapi.json"

// TestClient_FromPython runs test_fermata.py against the real program, through a bad proxy, and
// compares every call that it made with the OpenAPI document.
func TestClient_FromPython(t *testing.T) {
	testtier.Needs(t, "Python")
	program := build(t)
	sample, rules := demo(t, program), serve(t, program)
	front, samples := newProxy(t, rules.URL), newProxy(t, sample.URL)
	out := python(t, []string{
		"FERMATA_URL=" + front.URL, "FERMATA_TOKEN=" + rules.Token, "PERSON_TOKEN=" + rules.Person,
		"DEMO_URL=" + samples.URL, "DEMO_TOKEN=" + sample.Token, "DIRECTORY=" + t.TempDir(),
	}, "-m", "unittest", "-v", "test_fermata")
	ran := regexp.MustCompile(`(?m)^Ran (\d\d) tests`).FindString(out)
	if ran == "" || !strings.HasSuffix(strings.TrimSpace(out), "OK") {
		t.Errorf("not all tests ran:\n%s", out)
	}
	checkCalls(t, append(front.all, samples.all...))
}

// checkCalls checks that the document has each call with its parameters and fields, and that the
// tests made each call of the client.
func checkCalls(t *testing.T, calls []seen) {
	t.Helper()
	d := load(t)
	met := make(map[string]bool)
	for _, call := range calls {
		op, template := d.find(call.Method, call.Path)
		if op == nil {
			if !strings.Contains(call.Path, "/login") {
				t.Errorf("the document has no %s %s", call.Method, call.Path)
			}
			continue
		}
		met[call.Method+" "+strings.TrimPrefix(template, "/api/v1")] = true
		query, err := url.ParseQuery(call.Query)
		if err != nil {
			t.Error(err)
		}
		for name := range query {
			if !op.has("query", name) {
				t.Errorf("%s %s has no parameter %s", call.Method, template, name)
			}
		}
		for _, name := range []string{"Prefer", "Idempotency-Key", "Last-Event-ID"} {
			if call.Headers.Get(name) != "" && !op.has("header", name) {
				t.Errorf("%s %s has no header %s", call.Method, template, name)
			}
		}
		var body map[string]json.RawMessage
		if call.Body != "" {
			if err := json.Unmarshal([]byte(call.Body), &body); err != nil {
				t.Error(err)
			}
		}
		for name := range body {
			if !d.has(op.RequestBody.Content["application/json"].Schema.Ref, name) {
				t.Errorf("the body of %s %s has no field %s", call.Method, template, name)
			}
		}
	}
	for _, want := range []string{
		"POST /ai/chat", "GET /runs", "GET /runs/{stateKey}", "GET /runs/{stateKey}/events", "POST /runs/{stateKey}/cancel", "POST /runs/{stateKey}/receipt",
		"GET /runs/{stateKey}/graph", "GET /graphs", "GET /graphs/{graphId}", "POST /requests", "GET /requests", "GET /requests/{id}", "POST /requests/{id}/reveal",
		"POST /requests/{id}/decision", "POST /requests/{id}/reply", "GET /answers",
	} {
		if !met[want] {
			t.Errorf("no test calls %s", want)
		}
	}
}

// The types of the client and its codes are in the OpenAPI document.
func TestClient_NamesMatchOpenAPI(t *testing.T) {
	testtier.Needs(t, "Python")
	var names struct {
		Types           map[string][]string
		Codes, Outcomes []string
	}
	out := python(t, nil, "-c", `
import fermata, json
types = {n: list(t.__annotations__) for n, t in vars(fermata).items() if isinstance(t, type) and hasattr(t, "__total__")}
types["RunView"] = [n for n in types["RunView"] if n not in types["Run"]]
types.pop("TypedDict", None)
print(json.dumps({"types": types, "codes": list(fermata._PROBLEMS)}))`)
	if err := json.Unmarshal([]byte(out), &names); err != nil {
		t.Fatal(err, out)
	}
	d := load(t)
	schemas := map[string]string{"Interrupt": "OpenInterrupt", "Page": "PageRequest"}
	if len(names.Types) < 10 || len(names.Codes) < 10 {
		t.Fatalf("%+v", names)
	}
	for name, fields := range names.Types {
		schema := name
		if other, ok := schemas[name]; ok {
			schema = other
		}
		for _, field := range fields {
			if !d.has("#/components/schemas/"+schema, field) {
				t.Errorf("%s has no field %s", schema, field)
			}
		}
	}
	for _, code := range names.Codes {
		if !slices.Contains(d.Components.Schemas["Problem"].Properties["code"].Enum, code) {
			t.Errorf("the document has no code %s", code)
		}
	}
}

// Python 3.9 is the oldest supported version; its grammar is checked by a newer Python.
func TestClient_IsPython39WithoutDependencies(t *testing.T) {
	testtier.Needs(t, "Python")
	python(t, nil, "-c", `
import ast, sys
tree = ast.parse(open("fermata.py", encoding="utf-8").read(), feature_version=(3, 9))
for node in ast.walk(tree):
    names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) else []
    for name in names:
        if name.split(".")[0] not in sys.stdlib_module_names:
            sys.exit("not in the standard library: " + name)
    if isinstance(node, ast.Match):
        sys.exit("newer than Python 3.9")`)
}

// TestREADME_QuickStart runs the blocks of the README that have a name, as a reader would.
func TestREADME_QuickStart(t *testing.T) {
	testtier.Needs(t, "Python")
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- test: ([a-z]+) -->\n```python\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	s := serve(t, build(t))
	env := []string{"FERMATA_URL=" + s.URL, "FERMATA_TOKEN=" + s.Token, "PERSON_TOKEN=" + s.Person}
	for _, block := range blocks {
		t.Run(block[1], func(t *testing.T) {
			file := filepath.Join(t.TempDir(), block[1]+".py")
			if err := os.WriteFile(file, []byte(block[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			out := python(t, append(slices.Clone(env), "DIRECTORY="+t.TempDir()), "test_readme.py", file)
			for _, want := range regexp.MustCompile(`(?m)# prints: (.*)$`).FindAllStringSubmatch(block[2], -1) {
				if !strings.Contains(out, want[1]) {
					t.Errorf("it does not print %q:\n%s", want[1], out)
				}
			}
		})
	}
}

// The recipes are not run, because their libraries are not installed. Their names are checked.
func TestREADME_RecipesUseNamesOfTheClient(t *testing.T) {
	testtier.Needs(t, "Python")
	python(t, nil, "-m", "unittest", "test_recipes")
}

// openAPI is the part of the document that these tests read.
type openAPI struct {
	Paths      map[string]map[string]*operation
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	Parameters  []struct{ Name, In string }
	RequestBody struct {
		Content map[string]struct {
			Schema struct {
				Ref string `json:"$ref"`
			}
		}
	}
}

type schema struct {
	Properties map[string]struct{ Enum []string }
	OneOf      []schema
}

func load(t *testing.T) openAPI {
	t.Helper()
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var d openAPI
	if err := json.Unmarshal(data, &d); err != nil || len(d.Paths) == 0 {
		t.Fatal(err)
	}
	return d
}

// find returns the operation of a call. A path without parameters precedes one with parameters.
func (d openAPI) find(method, path string) (op *operation, template string) {
	for candidate, methods := range d.Paths {
		pattern := "^" + regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(candidate, `[^/]+`) + "$"
		if found := methods[strings.ToLower(method)]; found != nil && regexp.MustCompile(pattern).MatchString(path) && (op == nil || candidate == path) {
			op, template = found, candidate
		}
	}
	return op, template
}

func (o *operation) has(in, name string) bool {
	return slices.ContainsFunc(o.Parameters, func(p struct{ Name, In string }) bool { return p.In == in && p.Name == name })
}

func (d openAPI) has(ref, field string) bool {
	s := d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
	for _, s := range append(s.OneOf, s) {
		if _, ok := s.Properties[field]; ok {
			return true
		}
	}
	return false
}
