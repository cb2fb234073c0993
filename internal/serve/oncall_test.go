package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/desk"
)

const zurichShift = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\n" +
	"DTSTART;TZID=Europe/Zurich:20260302T090000\r\nDTEND;TZID=Europe/Zurich:20260302T180000\r\nRRULE:FREQ=DAILY\r\nSUMMARY:Ann\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"

// A server is configured with schedules in files, at URLs and at PagerDuty. It calls only public
// hosts, and those that the operator allows.
func TestSchedules_FromTheConfiguration(t *testing.T) {
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/oncalls" {
			fmt.Fprint(w, `{"oncalls":[{"user":{"email":"bob@example.com"}}]}`)
			return
		}
		fmt.Fprint(w, zurichShift)
	}))
	defer peer.Close()
	file := filepath.Join(t.TempDir(), "shifts.ics")
	if err := os.WriteFile(file, []byte(zurichShift), 0o600); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"Ann": "ann", "bob@example.com": "bob"}
	all := config.OnCall{
		"file": {Calendar: file, People: names}, "url": {CalendarURL: config.Secret(peer.URL + "/shifts.ics"), People: names},
		"pager": {PagerDuty: "P1", Token: "t0", URL: peer.URL, People: names}, "rota": {Rota: []string{"cyd"}, Start: "2026-01-05T09:00", TimeZone: "Asia/Tokyo"},
	}
	schedules, err := openSchedules(all, []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 7, 1, 7, 0, 0, 0, time.UTC) // 09:00 in Zurich
	for name, want := range map[string]string{"file": "ann", "url": "ann", "pager": "bob", "rota": "cyd"} {
		if got, err := schedules[name].OnCall(t.Context(), at); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := schedules["file"].OnCall(t.Context(), at.Add(-time.Second)); err != nil || len(got) != 0 {
		t.Errorf("before the shift: %q, %v", got, err)
	}
	for name, want := range map[string]string{"url": "only https", "pager": "only https"} {
		if _, err := openSchedules(config.OnCall{name: all[name]}, nil); err == nil || !strings.Contains(err.Error(), "oncall."+name) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s at a loopback address: %v", name, err)
		}
	}
	for want, bad := range map[string]config.Schedule{
		"time zone": {Rota: []string{"a"}, Start: "2026-01-05 09:00", TimeZone: "Mars"}, "local time": {Rota: []string{"a"}, Start: "soon"},
		"no such file": {Calendar: filepath.Join(t.TempDir(), "no.ics")}, "366": {Rota: []string{"a"}, Start: "2026-01-05 09:00", Days: 400},
	} {
		if _, err := openSchedules(config.OnCall{"db": bad}, nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "oncall.db") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Rules and routes may name a configured schedule, and no other.
func TestSchedules_AreKnownToRulesAndRoutes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	check := func(schedule string) error {
		c := config.Default()
		c.OnCall = config.OnCall{"db": {Rota: []string{"ann"}, Start: "2026-01-05 09:00"}}
		c.Desk.PolicyFile = write("policy.yaml", "default: allow\nrules:\n- id: drop\n  when: req.tool == \"drop\"\n  then: ask\n  reason: r\n  ask:\n    groups: [{from: [\"oncall:"+schedule+"\"]}]\n    deadline: 1h\n    route: night\n")
		c.Desk.RoutesFile = write("routes.yaml", "routes:\n- name: night\n  steps:\n  - {at: 0s, notify: [\"oncall:"+schedule+"\"]}\n  - {at: 1h, expire: stale}\n")
		_, d, err := openPolicyFiles(t.Context(), c, desk.Channels{})
		if err != nil {
			return err
		}
		if in, err := d.Directory.Member("oncall:db", "ann"); err != nil || !in {
			t.Errorf("ann on call: %v, %v", in, err)
		}
		return nil
	}
	if err := check("db"); err != nil {
		t.Error(err)
	}
	if err := check("net"); err == nil || !strings.Contains(err.Error(), "oncall:net") {
		t.Errorf("an unknown schedule: %v", err)
	}
}
