package compat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An exchange is one HTTP request and its response.
type exchange struct {
	Name     string   `json:"name"`
	As       string   `json:"as,omitempty"` // principal; empty for none
	At       int      `json:"at"`           // seconds after the start of the bubble
	Request  request  `json:"request"`
	Response response `json:"response"`
	// Unordered are the keys of lists whose order depends on random ids or on timing; "" is the
	// body.
	Unordered []string `json:"unordered,omitempty"`
}

type request struct {
	Method string            `json:"method"`
	Path   string            `json:"path"` // with the query
	Header map[string]string `json:"header,omitempty"`
	// Body is the JSON of the request. A body that is not JSON is in RawBody.
	Body    any    `json:"body,omitempty"`
	RawBody string `json:"rawBody,omitempty"`
}

// A response has the body of one of these forms: the JSON value; for application/x-ndjson and
// text/event-stream a list of JSON values or events; for other types the text.
type response struct {
	Status      int    `json:"status"`
	ContentType string `json:"contentType,omitempty"`
	Body        any    `json:"body,omitempty"`
}

const ndjson = "application/x-ndjson"

// send sends the request of an exchange and returns the response.
func (w *world) send(e exchange) (response, error) {
	var body io.Reader
	switch {
	case e.Request.RawBody != "":
		body = strings.NewReader(e.Request.RawBody)
	case e.Request.Body != nil:
		data, err := json.Marshal(e.Request.Body)
		if err != nil {
			return response{}, err
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), e.Request.Method, "http://"+loopback.String()+e.Request.Path, body)
	if err != nil {
		return response{}, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range e.Request.Header {
		r.Header.Set(name, value)
	}
	if e.As != "" {
		p := w.principals[e.As]
		switch {
		case p == nil:
			return response{}, fmt.Errorf("unknown principal %q", e.As)
		case p.Key != "":
			r.Header.Set("Authorization", "Bearer "+p.Key)
		default:
			r.Header.Set("Cookie", p.Cookie)
		}
	}
	got, err := w.client.Do(r)
	if err != nil {
		return response{}, err
	}
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	if err != nil {
		return response{}, err
	}
	contentType, _, _ := mime.ParseMediaType(got.Header.Get("Content-Type"))
	out := response{Status: got.StatusCode, ContentType: contentType}
	out.Body, err = parseBody(contentType, data)
	return out, err
}

func parseBody(contentType string, data []byte) (any, error) {
	switch {
	case len(data) == 0:
		return nil, nil
	case contentType == "application/json" || strings.HasSuffix(contentType, "+json"):
		return parseJSON(data)
	case contentType == ndjson:
		list := []any{}
		for line := range bytes.Lines(data) {
			value, err := parseJSON(line)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case contentType == "text/event-stream":
		return parseEvents(data)
	}
	return string(data), nil
}

func parseJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("%w in %.200s", err, data)
	}
	return value, nil
}

// parseEvents returns the events of a stream, without comments.
func parseEvents(data []byte) (any, error) {
	list := []any{}
	for block := range strings.SplitSeq(string(data), "\n\n") {
		event := map[string]any{}
		for line := range strings.Lines(block) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			if name == "" {
				continue
			}
			value = strings.TrimPrefix(value, " ")
			event[name] = value
			if name == "data" {
				parsed, err := parseJSON([]byte(value))
				if err != nil {
					return nil, err
				}
				event[name] = parsed
			}
		}
		if len(event) > 0 {
			list = append(list, event)
		}
	}
	return list, nil
}

// readExchanges reads the exchanges of a directory, in the order of their file names.
func readExchanges(t *testing.T, dir string) []exchange {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no exchanges in %s: %v", dir, err)
	}
	var list []exchange
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		d.DisallowUnknownFields()
		var e exchange
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list = append(list, e)
	}
	return list
}

// writeExchanges replaces the exchanges of a directory.
func writeExchanges(t *testing.T, dir string, list []exchange) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, e := range list {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")
		if err := encoder.Encode(e); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d-%s.json", i+1, e.Name)), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
