package compat

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// record names the set of files to write below testdata.
var record = flag.String("record", "", "write a new set of recorded files below testdata; never an existing one")

// A recorder sends requests and keeps the exchanges. Requests are written in the names of the set
// "base".
type recorder struct {
	*world
	names renames
	list  []exchange
	// unordered and numbers are keys for the next exchange.
	unordered, numbers []string
}

// do sends a request and returns the body of the response. Headers are pairs of name and value.
func (r *recorder) do(name, as, method, path, body string, headers ...string) any {
	r.t.Helper()
	e := exchange{
		Name: name, As: as, At: int(time.Since(bubbleStart).Seconds()), Unordered: r.unordered,
		Request: request{Method: method, Path: path, Header: make(map[string]string)},
	}
	for i := 0; i+1 < len(headers); i += 2 {
		e.Request.Header[headers[i]] = headers[i+1]
	}
	if body != "" {
		parsed, err := parseJSON([]byte(body))
		e.Request.Body = parsed
		if err != nil {
			e.Request.Body, e.Request.RawBody = nil, body
		}
	}
	sent := e
	sent.Request = r.names.request(e.Request)
	got, err := r.send(sent)
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	e.Response = got
	sortLists(e.Response.Body, "", r.names.exchange(e).Unordered)
	dropNumbers(e.Response.Body, r.numbers)
	r.unordered, r.numbers = nil, nil
	r.list = append(r.list, e)
	time.Sleep(time.Second) // so that no two exchanges have the same time
	return got.Body
}

func (r *recorder) get(name, as, path string, headers ...string) any {
	r.t.Helper()
	return r.do(name, as, "GET", "/api/v1"+path, "", headers...)
}

func (r *recorder) post(name, as, path, body string, headers ...string) any {
	r.t.Helper()
	return r.do(name, as, "POST", "/api/v1"+path, body, headers...)
}

// anyOrder says that the lists with these keys have no order in the next response; "" is the body.
func (r *recorder) anyOrder(keys ...string) *recorder {
	r.unordered = keys
	return r
}

// anyNumber says that the numbers with these keys depend on timing in the next response.
func (r *recorder) anyNumber(keys ...string) *recorder {
	for _, key := range keys {
		r.numbers = append(r.numbers, r.names.name(renameKey, nil, key))
	}
	return r
}

// start starts a run.
func (r *recorder) start(name, graph, stateKey, input string, headers ...string) any {
	r.t.Helper()
	return r.post(name, "robot", "/ai/chat", fmt.Sprintf(`{"graphId":%q,"stateKey":%q,"input":%s}`, graph, stateKey, input), headers...)
}

// text returns the string at a place of a body.
func (r *recorder) text(body any, place string) string {
	r.t.Helper()
	text, ok := r.names.at(body, place).(string)
	if !ok {
		data, _ := json.Marshal(body)
		r.t.Fatalf("no text at %s of %s", place, data)
	}
	return text
}

// wantStatus checks the status of the last response.
func (r *recorder) wantStatus(status int) {
	r.t.Helper()
	last := r.list[len(r.list)-1]
	if last.Response.Status != status {
		data, _ := json.Marshal(last.Response.Body)
		r.t.Fatalf("%s: status %d, want %d: %s", last.Name, last.Response.Status, status, data)
	}
}

// An open request is the id of a request and the digest of its content.
type openRequest struct{ id, shown string }

// open returns the open requests of a run by their address.
func (r *recorder) open(stateKey string) map[string]openRequest {
	r.t.Helper()
	run := r.get("open-requests-of-"+stateKey, "olga", "/runs/"+stateKey)
	found := make(map[string]openRequest)
	list, _ := r.names.at(run, "requests").([]any)
	for _, one := range list {
		if r.text(one, "state") == r.names.name(renameValue, []string{"state"}, "pending") {
			found[r.text(one, "address")] = openRequest{r.text(one, "id"), r.text(one, "shown")}
		}
	}
	return found
}

// only returns the one open request of a run.
func (r *recorder) only(stateKey string) openRequest {
	r.t.Helper()
	open := r.open(stateKey)
	if len(open) != 1 {
		r.t.Fatalf("%s has %d open requests", stateKey, len(open))
	}
	return slices.Collect(maps.Values(open))[0]
}

// decide answers a request.
func (r *recorder) decide(name, as string, q openRequest, resumeID, answer string) any {
	r.t.Helper()
	return r.post(name, as, "/requests/"+q.id+"/decision", fmt.Sprintf(`{"resumeId":%q,"answer":%s,"shown":%q}`, resumeID, answer, q.shown))
}

// TestRecord writes a set of recorded files. It does nothing without the flag -record.
func TestRecord(t *testing.T) {
	if *record == "" {
		t.Skip("only with -record")
	}
	dir := filepath.Join("testdata", *record)
	if _, err := os.Stat(dir); err == nil {
		t.Fatalf("%s exists; remove it first if it really is to be replaced", dir)
	}
	names, err := readRenames(filepath.Join("testdata", "renames.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	// Each set is recorded twice. The values that differ are the volatile ones.
	play := func(dir string, after time.Duration, scenario func(*recorder)) (list []exchange) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(after)
			r := &recorder{world: openWorld(t, dir), names: names}
			defer r.close()
			scenario(r)
			if err := r.store.Vacuum(t.Context()); err != nil {
				t.Error(err)
			}
			list = r.list
		})
		return list
	}
	first := t.TempDir()
	play(first, 0, freshScenario)
	stored := merge(t, play(copyFiles(t, first), reopenAfter, storedScenario), play(copyFiles(t, first), reopenAfter, storedScenario))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range installationFiles {
		copyFile(t, filepath.Join(first, name), filepath.Join(dir, name), 0o644)
	}
	writeExchanges(t, filepath.Join(dir, "exchanges", "stored"), stored)
}

// A merger makes one recording of two. What differs between them becomes a placeholder.
type merger struct {
	t     *testing.T
	where string
	pairs map[[2]string]string // placeholders by value in both recordings
	order [][2]string
	count map[string]int
}

func merge(t *testing.T, first, second []exchange) []exchange {
	t.Helper()
	if len(first) != len(second) {
		t.Fatalf("%d exchanges and %d", len(first), len(second))
	}
	m := &merger{t: t, pairs: make(map[[2]string]string), count: make(map[string]int)}
	var out []exchange
	for i, a := range first {
		b := second[i]
		m.where = a.Name
		e := exchange{Name: a.Name, As: a.As, At: a.At, Request: a.Request, Unordered: a.Unordered}
		e.Request.Path = m.known(a.Request.Path, 0)
		e.Request.Body = m.knownAll(a.Request.Body, 0)
		if e.Request.Path != m.known(b.Request.Path, 1) {
			t.Fatalf("%s: the paths differ: %s, %s", a.Name, a.Request.Path, b.Request.Path)
		}
		e.Response = response{Status: a.Response.Status, ContentType: a.Response.ContentType}
		if a.Response.Status != b.Response.Status || a.Response.ContentType != b.Response.ContentType {
			t.Fatalf("%s: the responses differ: %+v, %+v", a.Name, a.Response, b.Response)
		}
		e.Response.Body = m.value("", a.Response.Body, b.Response.Body)
		out = append(out, e)
	}
	return out
}

// known puts placeholders in the place of the values of one recording, the longest first.
func (m *merger) known(text string, recording int) string {
	pairs := slices.Clone(m.order)
	slices.SortStableFunc(pairs, func(a, b [2]string) int { return len(b[recording]) - len(a[recording]) })
	for _, pair := range pairs {
		if len(pair[recording]) >= 8 {
			text = strings.ReplaceAll(text, pair[recording], m.pairs[pair])
		}
	}
	return text
}

func (m *merger) knownAll(value any, recording int) any {
	switch v := value.(type) {
	case string:
		return m.known(v, recording)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.knownAll(v[i], recording)
		}
		return out
	case map[string]any:
		out := make(map[string]any)
		for key, inner := range v {
			out[m.known(key, recording)] = m.knownAll(inner, recording)
		}
		return out
	}
	return value
}

func (m *merger) value(place string, a, b any) any {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			break
		}
		byName := make(map[string]any)
		for key, value := range b {
			byName[m.known(key, 1)] = value
		}
		out := make(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(a)) {
			name := m.known(key, 0)
			other, ok := byName[name]
			if !ok {
				m.t.Fatalf("%s: %s.%s is only in one recording", m.where, place, name)
			}
			out[name] = m.value(place+"."+name, a[key], other)
		}
		return out
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		out := make([]any, len(a))
		for i := range a {
			out[i] = m.value(fmt.Sprintf("%s.%d", place, i), a[i], b[i])
		}
		return out
	case string:
		if b, ok := b.(string); ok {
			return m.text(a, b)
		}
	case json.Number:
		if b, ok := b.(json.Number); ok && a != b {
			return numberWildcard
		}
		return a
	default:
		if a == b {
			return a
		}
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	m.t.Fatalf("%s: %s differs:\n%s\n%s", m.where, place, x, y)
	return nil
}

var (
	idForm     = regexp.MustCompile(`^[a-z]+_[0-9a-zA-Z]+$`)
	digestForm = regexp.MustCompile(`^([0-9a-z]+:)?[0-9a-f]{32,}$`)
)

func (m *merger) text(a, b string) string {
	if at, err := time.Parse(time.RFC3339Nano, a); err == nil {
		return fmt.Sprintf("<time:+%.0fs>", at.Sub(bubbleStart).Seconds())
	}
	if a == b {
		return a
	}
	pair := [2]string{a, b}
	if name, ok := m.pairs[pair]; ok {
		return name
	}
	kind := "text"
	switch {
	case idForm.MatchString(a):
		kind = "id"
	case digestForm.MatchString(a):
		kind = "digest"
	}
	m.count[kind]++
	m.pairs[pair] = fmt.Sprintf("<%s:%d>", kind, m.count[kind])
	m.order = append(m.order, pair)
	return m.pairs[pair]
}

// sortLists sorts, for the recording, the lists with these keys by those parts of their elements
// that are not volatile. key is the key of the value itself; "" for a body.
func sortLists(value any, key string, keys []string) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			sortLists(inner, name, keys)
		}
	case []any:
		for _, inner := range v {
			sortLists(inner, key+"[]", keys)
		}
		if slices.Contains(keys, key) {
			slices.SortStableFunc(v, func(a, b any) int { return strings.Compare(stablePart(a), stablePart(b)) })
		}
	}
}

// dropNumbers puts a wildcard in the place of the numbers with these keys.
func dropNumbers(value any, keys []string) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			dropNumbers(inner, keys)
			if _, ok := inner.(json.Number); ok && slices.Contains(keys, name) {
				v[name] = numberWildcard
			}
		}
	case []any:
		for _, inner := range v {
			dropNumbers(inner, keys)
		}
	}
}

// stablePart is the text of a JSON value without volatile strings.
func stablePart(value any) string {
	data, _ := json.Marshal(value)
	return volatileString.ReplaceAllString(string(data), `""`)
}

var volatileString = regexp.MustCompile(`"([a-z]+_[0-9a-z]{20,}(:[0-9]+)?|([0-9a-z]+:)?[0-9a-f]{32,}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[^"]*)"`)
