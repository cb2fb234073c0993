package main

import (
	"strings"
	"testing"

	"github.com/fermata-go/fermata/examples/console/consoletest"
	"github.com/fermata-go/fermata/examples/console/target"
)

func TestMain(m *testing.M) { consoletest.Main(m, example) }

func TestTrip(t *testing.T) {
	consoletest.Test(t, consoletest.Scenario{
		Example: example,
		Answers: []consoletest.Answer{
			// “some” is not a number
			{To: "missing  interests", Lines: []string{"2027-04-09", "4", "some", "3", "tiles, the sea"}},
			{To: "missing  rooms", Lines: []string{"2"}},
		},
		Refusals:   []consoletest.Answer{{To: "missing  interests", Lines: []string{"/decline we stay at home"}}},
		Reason:     "we stay at home",
		Effects:    func(data string) (int, int, error) { return target.Open(data, "calendar").Count() },
		ModelCalls: 2,
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
