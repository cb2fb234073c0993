package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestOnCall_Schedules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, `
oncall:
  db: {rota: [ann, bob, ""], start: 2026-01-05 09:00, days: 1, timeZone: Europe/Zurich}
  net: {calendar: shifts.ics, people: {ann@example.com: ann}}
  web: {pagerduty: PABC123, tokenFile: `+file+`}
  shop: {calendarURLFile: `+file+`}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := OnCall{
		"db":  {Rota: []string{"ann", "bob", ""}, Start: "2026-01-05 09:00", Days: 1, TimeZone: "Europe/Zurich"},
		"net": {Calendar: "shifts.ics", People: map[string]string{"ann@example.com": "ann"}},
		"web": {PagerDuty: "PABC123", TokenFile: file, Token: "s3cret"}, "shop": {CalendarURLFile: file, CalendarURL: "s3cret"},
	}
	if !reflect.DeepEqual(c.OnCall, want) {
		t.Errorf("read %#v", c.OnCall)
	}
}

func TestOnCall_Mistakes(t *testing.T) {
	for text, want := range map[string]string{
		"oncall: [db]":                                "expected schedules by name",
		"oncall: {db: ann}":                           "oncall.db: expected a mapping of keys",
		"oncall: {db: {rotas: [ann]}}":                `oncall.db.rotas: unknown key; did you mean "rota"?`,
		"oncall: {db: {}}":                            "set exactly one of",
		"oncall: {db: {rota: [a], pagerduty: P}}":     "set exactly one of",
		"oncall: {db: {rota: [ann]}}":                 "start is missing",
		"oncall: {db: {calendar: x.ics, days: 2}}":    "belong to a rota",
		"oncall: {db: {pagerduty: P}}":                "tokenFile is missing",
		"oncall: {db: {calendar: x.ics, url: x}}":     "belong to pagerduty",
		"oncall: {db: {rota: {ann: 1}, start: now}}":  "oncall.db.rota: expected a list",
		"oncall: {db: {pagerduty: P, tokenFile: no}}": "tokenFile: no such file",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "oncall") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
