package config

import (
	"errors"
	"fmt"

	"github.com/fermata-go/fermata/internal/yamldoc"
)

// OnCall has on-call schedules by name: db for oncall:db.
type OnCall map[string]Schedule

// Schedule is a rota, a calendar or a schedule of PagerDuty.
type Schedule struct {
	// Rota are people who take turns of Days days, 7 by default. The first turn begins at Start, a
	// local time such as 2026-01-05 09:00. An empty name is a gap.
	Rota  []string `yaml:"rota"`
	Start string   `yaml:"start"`
	Days  int      `yaml:"days"`
	// TimeZone is an IANA name. Defaults to UTC.
	TimeZone string `yaml:"timeZone"`
	// Calendar is an iCalendar file or an https URL. CalendarURLFile is a file that contains the
	// URL.
	Calendar        string `yaml:"calendar"`
	CalendarURLFile string `yaml:"calendarURLFile"`
	// PagerDuty is the id of a schedule, TokenFile a file that contains a token of the REST API,
	// and URL its address if it is not https://api.pagerduty.com.
	PagerDuty string `yaml:"pagerduty"`
	TokenFile string `yaml:"tokenFile"`
	URL       string `yaml:"url"`
	// People maps names and e-mail addresses of a calendar or PagerDuty to people.
	People map[string]string `yaml:"people"`

	// CalendarURL and Token are read from their files.
	CalendarURL, Token Secret `yaml:"-"`
}

func (*OnCall) expected() string {
	return "expected schedules by name, for example {db: {rota: [ann, bob], start: 2026-01-05 09:00}}"
}

// read reads schedules, and their secret files.
func (o *OnCall) read(n yamldoc.Node, _ []string) {
	*o = make(OnCall)
	names, values := n.Keys()
	for i, name := range names {
		(*o)[name] = readSchedule(values[i])
	}
}

func readSchedule(n yamldoc.Node) (s Schedule) {
	n.Decode(&s)
	if !n.IsMapping() {
		return s
	}
	var err error
	if s.CalendarURL, err = readScheduleSecret("calendarURLFile", s.CalendarURLFile); err == nil {
		s.Token, err = readScheduleSecret("tokenFile", s.TokenFile)
	}
	if err = errors.Join(err, s.check()); err != nil {
		n.Reportf("%v", err)
	}
	return s
}

func readScheduleSecret(key, file string) (Secret, error) {
	if file == "" {
		return "", nil
	}
	text, err := readSecret(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	return Secret(text), nil
}

// check returns what is missing or does not belong together.
func (s Schedule) check() error {
	sources := 0
	for _, set := range []bool{len(s.Rota) > 0, s.Calendar != "", s.CalendarURLFile != "", s.PagerDuty != ""} {
		if set {
			sources++
		}
	}
	switch {
	case sources != 1:
		return errors.New("set exactly one of rota, calendar, calendarURLFile and pagerduty")
	case len(s.Rota) > 0 && s.Start == "":
		return errors.New("start is missing: when the first turn begins, such as 2026-01-05 09:00")
	case len(s.Rota) == 0 && (s.Start != "" || s.Days != 0):
		return errors.New("start and days belong to a rota")
	case s.PagerDuty != "" && s.TokenFile == "":
		return errors.New("tokenFile is missing")
	case s.PagerDuty == "" && (s.TokenFile != "" || s.URL != ""):
		return errors.New("tokenFile and url belong to pagerduty")
	}
	return nil
}
