package compat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// parsed returns a response with a JSON body.
func parsed(t *testing.T, status int, body string) response {
	t.Helper()
	value, err := parseJSON([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return response{Status: status, ContentType: "application/json", Body: value}
}

func TestCompare_ReportsEveryDifferenceThatIsNotAllowed(t *testing.T) {
	const recorded = `{"id":"<id:1>","state":"open","count":2,"at":"<time:+60s>","by":[{"run":"<id:1>"}],"detail":"old text","oldestOpenSeconds":7}`
	const same = `{"id":"a","state":"open","count":2,"at":"2000-01-01T00:01:01Z","by":[{"run":"a"}],"detail":"new text","oldestOpenSeconds":7.5}`
	for name, test := range map[string]struct {
		status   int
		old, new string // replaced in same
		want     string // part of the one difference; empty for none
	}{
		"same":             {200, "", "", ""},
		"other status":     {404, "", "", "status: recorded 200, got 404"},
		"missing field":    {200, `"count":2,`, "", "count: recorded 2"},
		"additional field": {200, `"count":2`, `"count":2,"more":1`, "more:"},
		"other value":      {200, `"open"`, `"closed"`, "state:"},
		"other number":     {200, `"count":2`, `"count":3`, "count:"},
		"other type":       {200, `"count":2`, `"count":"2"`, "count:"},
		"null":             {200, `"count":2`, `"count":null`, "count:"},
		"shorter list":     {200, `[{"run":"a"}]`, `[]`, "by (length):"},
		"other id":         {200, `"run":"a"`, `"run":"b"`, "id: recorded"},
		"other time":       {200, "00:01:01", "00:02:01", "at:"},
		"not a time":       {200, "2000-01-01T00:01:01Z", "soon", "at:"},
		"empty text":       {200, "new text", "", "detail:"},
		"measured":         {200, "7.5", "9.5", "oldestOpenSeconds:"},
		"renamed":          {200, `"state"`, `"status"`, "state:"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newComparer(nil)
			c.compare(parsed(t, 200, recorded), parsed(t, test.status, strings.Replace(same, test.old, test.new, 1)))
			got := strings.Join(c.differences, "\n")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("differences %q, want one with %q", got, test.want)
			}
		})
	}
}

func TestCompare_FindsTheOrderOfListsWithoutOne(t *testing.T) {
	recorded := `{"items":[{"id":"<id:1>","n":1},{"id":"<id:2>","n":2}]}`
	got := `{"items":[{"id":"b","n":2},{"id":"a","n":1}]}`
	for _, unordered := range [][]string{nil, {"items"}} {
		c := newComparer(nil)
		c.unordered = unordered
		c.compare(parsed(t, 200, recorded), parsed(t, 200, got))
		if (len(c.differences) == 0) != (unordered != nil) {
			t.Errorf("unordered %v: %q", unordered, c.differences)
		}
		if unordered != nil && c.values["<id:1>"] != "a" {
			t.Errorf("<id:1> is %q", c.values["<id:1>"])
		}
	}
}

func TestRenames_TranslateRecordedNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "renames.tsv")
	table := "# comment\n\nkey\tlife\tlifecycle\nkey\titems.by\tactor\nvalue\tstate=pending\topen\n" +
		"path\t/api/v1/requests/{}/escape\t/api/v1/requests/{}/abandon\nparam\tdays\tperiod\nheader\tPrefer\tX-Prefer\n"
	if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := readRenames(file)
	if err != nil {
		t.Fatal(err)
	}
	recorded := exchange{
		Request:  request{Method: "POST", Path: "/api/v1/requests/<id:1>/escape?days=1&state=pending", Header: map[string]string{"Prefer": "wait=1"}},
		Response: parsed(t, 200, `{"life":{"by":"ana","state":"pending"},"items":[{"by":"bob","note":"pending"}]}`),
	}
	e := names.exchange(recorded)
	if e.Request.Path != "/api/v1/requests/<id:1>/abandon?period=1&state=open" || e.Request.Header["X-Prefer"] != "wait=1" {
		t.Errorf("got %+v", e.Request)
	}
	c := newComparer(names)
	c.compare(e.Response, parsed(t, 200, `{"lifecycle":{"by":"ana","state":"open"},"items":[{"actor":"bob","note":"pending"}]}`))
	if len(c.differences) > 0 {
		t.Errorf("differences %q", c.differences)
	}
	if got := names.at(e.Response.Body, "items.0.by"); got != "bob" {
		t.Errorf("items.0.by is %v", got)
	}
	if err := os.WriteFile(file, []byte("field\ta\tb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRenames(file); err == nil {
		t.Error("a row of an unknown kind was read")
	}
}
