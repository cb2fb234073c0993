package hours_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk/hours"
)

func shift(zone string, from, to hours.TimeOfDay, days ...hours.Day) hours.Region {
	if len(days) == 0 {
		days = hours.Weekdays()
	}
	return hours.Region{Name: zone, Zone: zone, Windows: []hours.Window{{Days: days, From: from, To: to}}}
}

var (
	emea  = shift("Europe/Zurich", hours.At(9, 0), hours.At(18, 0))
	apac  = shift("Asia/Singapore", hours.At(9, 0), hours.At(18, 0))
	amer  = shift("America/New_York", hours.At(9, 0), hours.At(18, 0))
	night = shift("Europe/Zurich", hours.At(22, 0), hours.At(6, 0))
)

func at(t *testing.T, s string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestPickRegion_FollowsTheSun(t *testing.T) {
	sun := []hours.Region{emea, apac, amer}
	for name, test := range map[string]struct{ now, zone, when string }{
		"all closed on Monday night":                   {"2026-11-16T23:00:00Z", apac.Zone, "2026-11-17T01:00:00Z"},
		"morning in Zurich":                            {"2026-11-16T10:30:00Z", emea.Zone, "2026-11-16T10:30:00Z"},
		"too little time left":                         {"2026-11-16T16:45:00Z", amer.Zone, "2026-11-16T16:45:00Z"},
		"just enough time left, but less than another": {"2026-11-16T16:30:00Z", amer.Zone, "2026-11-16T16:30:00Z"},
		"Singapore alone":                              {"2026-11-16T03:00:00Z", apac.Zone, "2026-11-16T03:00:00Z"},
		"Saturday":                                     {"2026-11-14T12:00:00Z", apac.Zone, "2026-11-16T01:00:00Z"},
		"Friday evening in New York":                   {"2026-11-20T22:45:00Z", apac.Zone, "2026-11-23T01:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			region, when, err := hours.PickRegion(sun, at(t, test.now), 30*time.Minute)
			if err != nil || region.Zone != test.zone || !when.Equal(at(t, test.when)) {
				t.Errorf("PickRegion = %s at %s, %v; want %s at %s", region.Zone, when, err, test.zone, test.when)
			}
		})
	}
	if _, _, err := hours.PickRegion(nil, at(t, "2026-11-16T03:00:00Z"), 0); !errors.Is(err, hours.ErrNeverOpen) {
		t.Errorf("PickRegion without regions: %v", err)
	}
}

func TestPickRegion_WaitsForLongEnoughShift(t *testing.T) {
	short := hours.Region{Name: "x", Zone: "UTC", Windows: []hours.Window{
		{Days: hours.Weekdays(), From: hours.At(9, 0), To: hours.At(9, 20)}, {Days: []hours.Day{3}, From: hours.At(14, 0), To: hours.At(16, 0)},
	}}
	_, when, err := hours.PickRegion([]hours.Region{short}, at(t, "2026-11-16T09:00:00Z"), time.Hour)
	if err != nil || !when.Equal(at(t, "2026-11-18T14:00:00Z")) {
		t.Errorf("PickRegion = %s, %v; want Wednesday's two hours", when, err)
	}
	if _, when, err := hours.PickRegion([]hours.Region{short}, at(t, "2026-11-16T09:00:00Z"), 3*time.Hour); !errors.Is(err, hours.ErrNeverOpen) {
		t.Errorf("PickRegion = %s, %v; it never opens for three hours", when, err)
	}
}

func TestOpen_AcrossMidnightAndDaylightSaving(t *testing.T) {
	saturday := hours.Day(time.Saturday)
	for name, test := range map[string]struct {
		region hours.Region
		at     string
		until  string // empty: closed
	}{
		"night shift after midnight":        {night, "2026-11-17T03:00:00Z", "2026-11-17T05:00:00Z"},
		"Friday's runs into Saturday":       {night, "2026-11-21T03:00:00Z", "2026-11-21T05:00:00Z"},
		"Saturday has no shift":             {night, "2026-11-21T22:00:00Z", ""},
		"noon is not in the night shift":    {night, "2026-11-18T11:00:00Z", ""},
		"begins exactly on time":            {emea, "2026-11-16T08:00:00Z", "2026-11-16T17:00:00Z"},
		"ends exactly on time":              {emea, "2026-11-16T17:00:00Z", ""},
		"seven hours in spring":             {shift("Europe/Zurich", hours.At(22, 0), hours.At(6, 0), saturday), "2026-03-28T21:00:00Z", "2026-03-29T04:00:00Z"},
		"nine hours in autumn":              {shift("Europe/Zurich", hours.At(22, 0), hours.At(6, 0), saturday), "2026-10-24T20:00:00Z", "2026-10-25T05:00:00Z"},
		"end is skipped, east of Greenwich": {shift("Europe/Zurich", hours.At(1, 0), hours.At(2, 30), 0), "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"},
		"end is skipped, west of Greenwich": {shift("America/New_York", hours.At(1, 0), hours.At(2, 30), 0), "2026-03-08T06:30:00Z", "2026-03-08T07:30:00Z"},
		"end occurs twice, east":            {shift("Europe/Zurich", hours.At(1, 0), hours.At(2, 30), 0), "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z"},
		"end occurs twice, west":            {shift("America/New_York", hours.At(0, 0), hours.At(1, 30), 0), "2026-11-01T05:00:00Z", "2026-11-01T05:30:00Z"},
		"half an hour on Lord Howe":         {shift("Australia/Lord_Howe", hours.At(0, 0), hours.At(1, 45), 0), "2026-04-04T14:00:00Z", "2026-04-04T14:45:00Z"},
		"day without midnight":              {shift("Africa/Cairo", hours.At(0, 0), hours.At(24, 0), 5), "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"},
		"around the clock":                  {shift("UTC", hours.At(0, 0), hours.At(24, 0), 0, 1, 2, 3, 4, 5, 6), "2026-11-16T12:00:00Z", "2026-11-18T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			until, open := test.region.Open(at(t, test.at))
			if open != (test.until != "") {
				t.Fatalf("open = %v until %s", open, until)
			}
			if open && !until.Equal(at(t, test.until)) {
				t.Errorf("until %s, want %s", until, test.until)
			}
		})
	}
}

func TestOpen_AdjacentShiftsAreOne(t *testing.T) {
	two := hours.Region{Name: "x", Zone: "UTC", Windows: []hours.Window{
		{Days: hours.Weekdays(), From: hours.At(12, 0), To: hours.At(18, 0)},
		{Days: hours.Weekdays(), From: hours.At(9, 0), To: hours.At(12, 0)},
	}}
	until, open := two.Open(at(t, "2026-11-16T11:50:00Z"))
	if !open || !until.Equal(at(t, "2026-11-16T18:00:00Z")) {
		t.Errorf("open = %v until %s, want until 18:00", open, until)
	}
}

func TestAdd_CountsOpenHoursOnly(t *testing.T) {
	holiday := emea
	holiday.Holidays = []hours.Date{"2026-11-16"}
	for name, test := range map[string]struct {
		regions []hours.Region
		from    string
		d       time.Duration
		want    string
	}{
		"over the weekend":             {[]hours.Region{emea}, "2026-11-13T16:00:00Z", 4 * time.Hour, "2026-11-16T11:00:00Z"},
		"and a holiday":                {[]hours.Region{holiday}, "2026-11-13T16:00:00Z", 4 * time.Hour, "2026-11-17T11:00:00Z"},
		"zero duration while closed":   {[]hours.Region{emea}, "2026-11-14T16:00:00Z", 0, "2026-11-16T08:00:00Z"},
		"within a day":                 {[]hours.Region{emea}, "2026-11-16T10:00:00Z", time.Hour, "2026-11-16T11:00:00Z"},
		"two regions take turns":       {[]hours.Region{emea, apac}, "2026-11-16T16:00:00Z", 2 * time.Hour, "2026-11-17T02:00:00Z"},
		"overlapping hours count once": {[]hours.Region{emea, amer}, "2026-11-16T13:00:00Z", 8 * time.Hour, "2026-11-16T21:00:00Z"},
		"two working days in spring":   {[]hours.Region{emea}, "2026-03-27T08:00:00Z", 18 * time.Hour, "2026-03-30T16:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := hours.Add(test.regions, at(t, test.from), test.d)
			if err != nil || !got.Equal(at(t, test.want)) {
				t.Errorf("Add = %s, %v; want %s", got, err, test.want)
			}
		})
	}
	if _, err := hours.Add([]hours.Region{{Name: "x", Zone: "UTC"}}, at(t, "2026-11-13T16:00:00Z"), time.Hour); !errors.Is(err, hours.ErrNeverOpen) {
		t.Errorf("region that never opens: %v", err)
	}
}

func TestCheck_ReportsAllErrors(t *testing.T) {
	bad := hours.Region{Zone: "Mars/Olympus", Holidays: []hours.Date{"25.12."}, Windows: []hours.Window{
		{From: hours.At(9, 0), To: hours.At(18, 0)}, {Days: []hours.Day{9}, From: -1, To: 0},
	}}
	text := errors.Join(bad.Check()...).Error()
	for _, want := range []string{"name is missing", "Mars/Olympus", "have no days", "not a valid time range", "invalid day of the week", `invalid date "25.12."`, "never opens"} {
		if !strings.Contains(text, want) {
			t.Errorf("Check does not report %q: %s", want, text)
		}
	}
	if errs := emea.Check(); len(errs) > 0 {
		t.Errorf("valid region: %v", errs)
	}
	for _, zone := range []string{"", "Local"} { // the zone of the machine, and the default UTC
		if errs := shift(zone, 0, hours.At(9, 0)).Check(); len(errs) == 0 {
			t.Errorf("zone %q is accepted", zone)
		}
	}
}

func TestEncoding_RoundTrips(t *testing.T) {
	text, err := json.Marshal(night)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"days":["mon","tue","wed","thu","fri"],"from":"22:00","to":"06:00"`) {
		t.Errorf("encoded as %s", text)
	}
	var again hours.Region
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if second, _ := json.Marshal(again); string(second) != string(text) {
		t.Errorf("decoded as %s, was %s", second, text)
	}
	for _, bad := range []string{`"9:00"`, `"25:00"`, `"09:60"`, `"noon"`, `"24:01"`, `""`} {
		if json.Unmarshal([]byte(bad), new(hours.TimeOfDay)) == nil {
			t.Errorf("%s is accepted as a time", bad)
		}
	}
	if json.Unmarshal([]byte(`"Monday"`), new(hours.Day)) == nil {
		t.Error("Monday is accepted as mon")
	}
}
