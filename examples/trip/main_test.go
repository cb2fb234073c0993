package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/examples/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, "trip", run) }

func TestTrip(t *testing.T) {
	exampletest.Test(t, exampletest.Scenario{
		Answers: []exampletest.Answer{
			{To: "Which day do you leave", Line: "2027-04-09; 4; 3; tiles, the sea"},
			{To: "How many rooms", Line: "2"},
		},
		Refusal: []string{"2027-04-09", "2027-04-09; 4; some; tiles", "no we stay at home"},
		Reason:  "Then there is no trip for now. ",
		Effects: func(t testing.TB, dir string) int { return exampletest.Files(t, filepath.Join(dir, "calendar")) },
	})
}

func TestMissing_IsAskedAsOftenAsItTakes(t *testing.T) {
	whole := Trip{City: "Lisbon", Start: "2027-04-09", Nights: 4, Travellers: 2, Interests: []string{"tiles"}}
	for name, test := range map[string]struct {
		change func(*Trip)
		want   string
	}{
		"nothing":                {func(*Trip) {}, ""},
		"the nights":             {func(t *Trip) { t.Nights = 0 }, "nights"},
		"all but the city":       {func(t *Trip) { *t = Trip{City: "Lisbon"} }, "start nights travellers interests"},
		"an invalid day":         {func(t *Trip) { t.Start = "in spring" }, "start"},
		"rooms for three people": {func(t *Trip) { t.Travellers = 3 }, "rooms"},
		"rooms without a number": {func(t *Trip) { t.Travellers, t.Rooms = 3, 1 }, ""},
	} {
		trip := whole
		test.change(&trip)
		var fields []string
		for _, m := range missing(trip) {
			fields = append(fields, m.Field)
		}
		if got := strings.Join(fields, " "); got != test.want {
			t.Errorf("%s: asks for %q, want %q", name, got, test.want)
		}
	}
}
