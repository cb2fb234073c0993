package server_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/golden"
)

// The document is generated from the code; the committed one shows what a change means for clients.
func TestOpenAPI_MatchesGolden(t *testing.T) {
	s := open(t, nil)
	golden.CompareJSON(t, "openapi.json", s.call("", "GET", "/openapi.json", "").body, "  ")
}

// specChecker validates against the schemas of a document.
type specChecker struct {
	document *huma.OpenAPI
	mu       sync.Mutex
	schemas  map[string]*jsonschema.Resolved
	defs     map[string]*jsonschema.Schema
}

func newSpecChecker(document *huma.OpenAPI) (*specChecker, error) {
	r := &specChecker{document: document, schemas: make(map[string]*jsonschema.Resolved), defs: make(map[string]*jsonschema.Schema)}
	for name, schema := range document.Components.Schemas.Map() {
		converted, err := convert(schema)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		r.defs[name] = converted
	}
	return r, nil
}

// convert reads a schema of the document, without its definitions.
func convert(schema *huma.Schema) (*jsonschema.Schema, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	converted := new(jsonschema.Schema)
	return converted, json.Unmarshal(bytes.ReplaceAll(text, []byte("#/components/schemas/"), []byte("#/$defs/")), converted)
}

// check validates a JSON text against a schema of the document.
func (r *specChecker) check(schema *huma.Schema, text []byte) error {
	key, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	resolved := r.schemas[string(key)]
	if resolved == nil {
		converted, err := convert(schema)
		if err != nil {
			return err
		}
		converted.Defs = r.defs
		if resolved, err = converted.Resolve(nil); err != nil {
			return err
		}
		r.schemas[string(key)] = resolved
	}
	var value any
	err = json.Unmarshal(text, &value)
	// a number may be too large for Go
	if _, large := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !large {
		return err
	}
	return resolved.Validate(value)
}

// named returns a reference to a named schema.
func named(name string) *huma.Schema { return &huma.Schema{Ref: "#/components/schemas/" + name} }

// operation finds the operation of a request.
func (r *specChecker) operation(request *http.Request) *huma.Operation {
	parts := strings.Split(request.URL.EscapedPath(), "/")
	paths := slices.SortedFunc(maps.Keys(r.document.Paths), func(a, b string) int { // the specific ones first
		return cmp.Or(strings.Count(a, "{")-strings.Count(b, "{"), strings.Compare(a, b))
	})
	for _, path := range paths {
		item, template := r.document.Paths[path], strings.Split(path, "/")
		if len(template) != len(parts) || !slices.EqualFunc(template, parts, func(t, p string) bool { return t == p || strings.HasPrefix(t, "{") && p != "" }) {
			continue
		}
		return map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "DELETE": item.Delete, "PATCH": item.Patch}[request.Method]
	}
	return nil
}

// judge returns what is wrong with a response; nil if it is valid.
func (r *specChecker) judge(op *huma.Operation, status int, header http.Header, body []byte) error {
	response := op.Responses[strconv.Itoa(status)]
	if response == nil {
		response = op.Responses["default"]
	}
	if response == nil {
		return fmt.Errorf("no response with status %d is documented", status)
	}
	if len(body) == 0 && len(response.Content) == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return err
	}
	media := response.Content[kind]
	if media == nil {
		return fmt.Errorf("%s is not documented for %d", kind, status)
	}
	for name := range response.Headers {
		if header.Get(name) == "" {
			return fmt.Errorf("the header %s is missing", name)
		}
	}
	if kind == "text/html" { // its own check reads the data in it
		return nil
	}
	if kind == "text/event-stream" {
		return r.judgeStream(op, body)
	}
	if kind == "application/x-ndjson" {
		for line := range bytes.Lines(body) {
			if !json.Valid(line) {
				return fmt.Errorf("%q is not a line", line)
			}
		}
		return nil
	}
	return r.check(media.Schema, body)
}

// judgeStream validates the events of a stream. The last may be cut off.
func (r *specChecker) judgeStream(op *huma.Operation, body []byte) error {
	schemas := map[string]string{
		api.EventRun: "Pending", api.EventStep: "Step", api.EventToken: "Token", api.EventInterrupt: "OpenInterrupt", api.EventOutcome: "Outcome", api.EventProblem: "Problem",
		api.ConversationState: "ConversationStatus",
	}
	messages := strings.Split(string(body), "\n\n")
	for _, message := range messages[:len(messages)-1] {
		var kind, data, id string
		for line := range strings.SplitSeq(message, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "event":
				kind = value
			case "data":
				data = value
			case "id":
				id = value
			case "": // a comment
			default:
				return fmt.Errorf("a line %q", line)
			}
		}
		schema, transient := schemas[kind]
		switch {
		case kind == "" && data == "" && id == "":
			continue
		case op.OperationID == "request-events":
			schema = "QueueEvent"
		case kind == api.ConversationLine && id != "":
			schema = "ConversationLine"
		case transient != (id == ""):
			return fmt.Errorf("the event %s has the id %q", kind, id)
		case !transient:
			schema = "Event"
		}
		if err := r.check(named(schema), []byte(data)); err != nil {
			return fmt.Errorf("the event %s: %w: %s", kind, err, data)
		}
	}
	return nil
}

// checked validates every response of a server.
func checked(t *testing.T, next http.Handler, document *huma.OpenAPI) http.Handler {
	t.Helper()
	rules, err := newSpecChecker(document)
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		spy := &recordingWriter{ResponseWriter: w}
		next.ServeHTTP(spy, r)
		op := rules.operation(r)
		if op == nil || spy.lost {
			return
		}
		if err := rules.judge(op, spy.status, w.Header(), spy.body.Bytes()); err != nil {
			t.Errorf("%s %s: %d: %v: %s", r.Method, r.URL.Path, spy.status, err, spy.body.String())
		}
	})
}

// recordingWriter records a response.
type recordingWriter struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
	lost   bool // the client has disconnected
}

func (w *recordingWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *recordingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.body.Write(p[:n])
	w.lost = w.lost || err != nil
	return n, err
}

func (w *recordingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
