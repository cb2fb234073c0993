package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/testtier"
)

// generator generates requests from the OpenAPI document, and invalid ones.
type generator struct {
	*rand.Rand
	document *huma.OpenAPI
	words    []string // possible texts
	marker   string   // of the account
}

// hostileTexts are texts that careless code may mishandle.
var hostileTexts = []string{
	"", " ", "\x00", "a/../b", "..", ".", "%", "%2e%2e%2f", "null", "true", "-1", "0", "1e400", "9007199254740993", "'; DROP TABLE runs; --", "{{.}}", "${jndi:x}", "\r\nX: y",
	"ünïcødé", "\u202e", "\ufeff", "😀", strings.Repeat("a", 511), strings.Repeat("b", 513), strings.Repeat("ä", 300), "int_x~2", "~", "a~99999999999999999999",
}

func (m *generator) one(of ...string) string { return of[m.IntN(len(of))] }

func (m *generator) text() string {
	if m.IntN(4) == 0 {
		return m.one(hostileTexts...)
	}
	return m.one(m.words...)
}

// value generates JSON for a schema, usually valid.
func (m *generator) value(schema *huma.Schema, depth int) any {
	if schema != nil && schema.Ref != "" {
		schema = m.document.Components.Schemas.SchemaFromRef(schema.Ref)
	}
	if schema == nil || schema.Type == "" || m.IntN(30) == 0 {
		return m.anything(depth)
	}
	if len(schema.Enum) > 0 && m.IntN(10) > 0 {
		return schema.Enum[m.IntN(len(schema.Enum))]
	}
	switch schema.Type {
	case "object":
		object := make(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			if slices.Contains(schema.Required, name) && m.IntN(20) > 0 || m.IntN(3) == 0 {
				object[name] = m.value(schema.Properties[name], depth+1)
			}
		}
		if more, ok := schema.AdditionalProperties.(*huma.Schema); ok || m.IntN(30) == 0 {
			object[m.text()] = m.value(more, depth+1)
		}
		return object
	case "array":
		return []any{m.value(schema.Items, depth+1)}
	case "integer", "number":
		return json.Number(m.one("0", "1", "2", "-1", "100", "1001", "1e3", "9223372036854775808"))
	case "boolean":
		return m.IntN(2) == 0
	}
	return m.text()
}

func (m *generator) anything(depth int) any {
	switch m.IntN(8) {
	case 0:
		return nil
	case 1:
		return m.IntN(2) == 0
	case 2:
		return json.Number(m.one("0", "-0", "1e308", "9007199254740993", "0.1"))
	case 3:
		if depth < 5 {
			return []any{m.anything(depth + 1), m.anything(depth + 1)}
		}
	case 4:
		return map[string]any{"action": m.one("approve", "revise", "reject", "x"), "feedback": m.marker}
	case 5:
		return map[string]any{"topic": m.marker}
	case 6:
		if depth < 5 {
			return map[string]any{m.text(): m.anything(depth + 1)}
		}
	}
	return m.text()
}

// body generates a request body, sometimes an invalid one.
func (m *generator) body(op *huma.Operation) string {
	if op.RequestBody == nil {
		return m.one("", "", "{}", "x")
	}
	schema := op.RequestBody.Content["application/json"].Schema
	made := m.value(schema, 0)
	if object, ok := made.(map[string]any); ok && m.IntN(2) == 0 {
		made = m.sensible(op.OperationID, object)
	}
	data, err := json.Marshal(made)
	if err != nil {
		return "{"
	}
	if len(data) > 0 && m.IntN(10) == 0 {
		data[m.IntN(len(data))] ^= byte(1 << m.IntN(8))
	}
	return string(data)
}

// sensible is a meaningful body, with perhaps one other member.
func (m *generator) sensible(operation string, other map[string]any) map[string]any {
	approve := map[string]any{"action": m.one("approve", "revise"), "feedback": m.marker}
	made := map[string]any{"resumeId": m.one("1", "2", "3"), "answer": approve}
	switch {
	case operation == "create-request":
		made = map[string]any{"kind": "sign", "data": m.marker, "stateKey": m.one(m.words...)}
	case operation == "chat" && m.IntN(2) == 0:
		made = map[string]any{"graphId": "inproc:content-review", "stateKey": m.one(m.words...), "input": map[string]any{"topic": m.marker}}
	case operation == "chat":
		made = map[string]any{"stateKey": m.one("a", "b", "a/b"), "resumeId": m.one("1", "2", "3"), "resumeValue": approve}
	}
	if names := slices.Sorted(maps.Keys(other)); len(names) > 0 && m.IntN(4) == 0 {
		name := m.one(names...)
		made[name] = other[name]
	}
	return made
}

// request generates a request for an operation.
func (m *generator) request(ctx context.Context, op *huma.Operation, token string) *http.Request {
	path, query, header := op.Path, make(url.Values), make(http.Header)
	for _, p := range op.Parameters {
		text := m.text()
		switch {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(text))
		case m.IntN(2) == 0:
		case p.In == "query":
			query.Add(p.Name, strings.Trim(fmt.Sprint(m.value(p.Schema, 3)), "[]"))
		case p.In == "header":
			header.Set(p.Name, m.one("respond-async", "wait=0", "wait=1", "wait=x", "text/event-stream", "*/*", "1", "-1", "x", text))
		}
	}
	if m.IntN(20) == 0 {
		query.Add(m.text(), m.text())
	}
	body := m.body(op)
	r := httptest.NewRequestWithContext(ctx, op.Method, "http://a/", strings.NewReader(body))
	r.URL.RawQuery = query.Encode()
	if u, err := url.Parse(path); err == nil {
		r.URL.Path, r.URL.RawPath = u.Path, u.RawPath
	}
	r.Header = header
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set("Content-Type", m.one("application/json", "application/json", "application/json", "application/json; charset=utf-8", "text/plain"))
	if m.IntN(20) > 0 {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// operations lists the operations of the document in order.
func operations(document *huma.OpenAPI) (all []*huma.Operation) {
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		item := document.Paths[path]
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete, item.Patch} {
			if op != nil {
				all = append(all, op)
			}
		}
	}
	return all
}

// streamRecorder records a response. It disconnects from a stream after the first data.
type streamRecorder struct {
	*httptest.ResponseRecorder
	cancel context.CancelFunc
}

func (l *streamRecorder) Flush()                           { l.cancel() }
func (l *streamRecorder) SetWriteDeadline(time.Time) error { return nil }
func (l *streamRecorder) SetReadDeadline(time.Time) error  { return nil }

// Random requests cause no internal error, show no data of other accounts, and leak
// nothing. The site checks that every response is documented.
func TestHostile_RandomRequests(t *testing.T) {
	count := testtier.Count(2_000, 10_000, 10_000)
	s := open(t, nil)
	words := func() []string { // with the ids of open requests of both accounts
		list := []string{"a", "b", "a/b", "c", "inproc:content-review", "inproc:clerk", "external:request", "content-review", "1", "2", "pending", "all"}
		for _, account := range []string{"acme", "other"} {
			for _, key := range []string{"a", "b", "a/b"} {
				if got := s.chat("agent@"+account, fmt.Sprintf(`{"graphId":"inproc:content-review","stateKey":%q,"input":{"topic":%q}}`, key, canary+"-"+account)); got.status != 200 {
					t.Fatalf("%+v", got)
				}
			}
			for _, q := range s.openRequests(account) {
				list = append(list, q.ID)
			}
		}
		return list
	}
	all := operations(s.api)
	decision := all[slices.IndexFunc(all, func(op *huma.Operation) bool { return op.OperationID == "decide" })]
	r := rand.New(rand.NewPCG(1, 3))
	answers := make(map[string][]int)
	run := func(n int) {
		known := words()
		for range n {
			account, foreign := "acme", "other"
			if r.IntN(2) == 0 {
				account, foreign = foreign, account
			}
			m := &generator{r, s.api, known, canary + "-" + account}
			op := all[r.IntN(len(all))]
			if r.IntN(10) == 0 { // few random decisions are valid
				op = decision
			}
			if op.OperationID == "audit-findings" && r.IntN(10) > 0 {
				// it has no arguments, and reads the whole log, which grows with every request here
				op = all[r.IntN(len(all))]
			}
			ctx, cancel := context.WithCancel(t.Context())
			request := m.request(ctx, op, string(authn.Roles[r.IntN(len(authn.Roles))])+"@"+account)
			got := &streamRecorder{httptest.NewRecorder(), cancel}
			s.handler.ServeHTTP(got, request)
			cancel()
			answers[op.OperationID] = append(answers[op.OperationID], got.Code)
			if text := got.Body.String(); got.Code >= 500 || strings.Contains(text, canary+"-"+foreign) {
				t.Fatalf("%s %s for %s: %d %s", op.Method, request.URL, account, got.Code, text)
			}
		}
		for _, account := range []string{"acme", "other"} {
			if _, err := s.e.EraseAccount(context.Background(), account); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(max(count/10, 1000)) // fills what is cached for each operation
	heap, goroutines := resources()
	run(count)
	for _, id := range []string{"chat", "create-request", "decide", "cancel-run", "get-run", "get-request", "list-runs", "list-requests", "list-answers", "run-events", "me"} {
		// a short run makes too few requests of each operation to expect a success
		if codes := answers[id]; testtier.IsNightly() && !slices.ContainsFunc(codes, func(code int) bool { return code < 300 }) {
			t.Errorf("%s never succeeded: %d requests", id, len(codes))
		}
	}
	s.until("goroutines are as many as before", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
	if after, _ := resources(); after > heap+4<<20 {
		t.Errorf("the heap has grown from %d to %d KiB", heap>>10, after>>10)
	}
}

// resources returns what this process uses.
func resources() (heap uint64, goroutines int) {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what pools kept
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, runtime.NumGoroutine()
}
