// Package people has the notification settings of a person: which channels get which notices, quiet
// hours, and absences with a delegate.
//
//	settings := people.Settings{
//		Rules: []people.Rule{{Notices: []desk.NoticeKind{desk.NoticeRemind}, Channels: []string{"slack"}}},
//		Quiet: &people.QuietHours{Zone: "Europe/Zurich", From: hours.At(22, 0), To: hours.At(7, 0)},
//	}
//	err := settings.Check("ann")
//	uses := settings.Uses("email", people.About{Notice: desk.NoticeRemind})
//
// The zero value sends every notice at once, through every channel that the person has linked. The
// inbox always has every request: settings only choose what is sent.
package people

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/hours"
)

// Limits of the settings of one person.
const (
	maxRules = 20
	maxNames = 20
	maxName  = 200
	maxRisk  = 3
)

// Settings says how a person is notified.
type Settings struct {
	// Rules choose the channels. The first that matches applies. A notice that no rule matches uses
	// all channels.
	Rules []Rule `json:"rules,omitempty"`
	// Quiet delays notices; nil for none.
	Quiet *QuietHours `json:"quiet,omitempty"`
	// Away is an absence; nil for none.
	Away *Absence `json:"away,omitempty"`
}

// Rule chooses channels for some notices. Empty conditions match everything.
type Rule struct {
	// Notices are kinds of notices: notify, remind, page or tell-requester.
	Notices []desk.NoticeKind `json:"notices,omitempty"`
	// Kinds are kinds of requests, such as approval.
	Kinds []string `json:"kinds,omitempty"`
	// MinRisk matches requests with at least this risk, 0 to 3.
	MinRisk int `json:"minRisk,omitempty"`
	// Channels are kinds of channels, such as slack. Without one the request is in the inbox only.
	Channels []string `json:"channels"`
}

// QuietHours delay notices until their end. Pages are sent anyway.
type QuietHours struct {
	// Zone is an IANA time zone.
	Zone string `json:"zone"`
	// Days are the days on which the quiet hours begin. Every day if empty.
	Days []hours.Day `json:"days,omitempty"`
	// From and To are local times. If To is not after From, the hours end on the next day.
	From hours.TimeOfDay `json:"from"`
	To   hours.TimeOfDay `json:"to"`
	// HoldPages also delays pages.
	HoldPages bool `json:"holdPages,omitempty"`
	// UrgentRisk sends notices of requests with at least this risk anyway; 0 sends none.
	UrgentRisk int `json:"urgentRisk,omitempty"`
}

// Absence is a time in which a person is not notified.
type Absence struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// Delegate is notified instead, if their decision on the request counts and they belong to the
	// same groups. A delegate gets no rights.
	Delegate string `json:"delegate,omitempty"`
}

// About is a notice as rules see it.
type About struct {
	Notice desk.NoticeKind
	Kind   string // of the request
	Risk   int    // of the request
}

// notices are the kinds that rules may name.
var notices = []desk.NoticeKind{desk.NoticeNotify, desk.NoticeRemind, desk.NoticePage, desk.NoticeRequester}

// Check returns what is wrong with the settings of a person.
func (s Settings) Check(person string) error {
	if len(s.Rules) > maxRules {
		return fmt.Errorf("%d rules; at most %d are allowed", len(s.Rules), maxRules)
	}
	for i, r := range s.Rules {
		if err := r.check(); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	if s.Quiet != nil {
		if err := s.Quiet.check(); err != nil {
			return fmt.Errorf("quiet hours: %w", err)
		}
	}
	if s.Away != nil {
		if err := s.Away.check(person); err != nil {
			return fmt.Errorf("absence: %w", err)
		}
	}
	return nil
}

func (r Rule) check() error {
	for _, n := range r.Notices {
		if !slices.Contains(notices, n) {
			return fmt.Errorf("unknown notice %q; use notify, remind, page or tell-requester", n)
		}
	}
	for _, names := range [][]string{r.Kinds, r.Channels} {
		if len(names) > maxNames || slices.ContainsFunc(names, func(n string) bool { return n == "" || len(n) > maxName }) {
			return fmt.Errorf("a list has at most %d names of 1 to %d characters", maxNames, maxName)
		}
	}
	return checkRisk(r.MinRisk)
}

func checkRisk(risk int) error {
	if risk < 0 || risk > maxRisk {
		return fmt.Errorf("the risk %d is not 0 to %d", risk, maxRisk)
	}
	return nil
}

func (q QuietHours) check() error {
	if err := errors.Join(q.region().Check()...); err != nil {
		return err
	}
	return checkRisk(q.UrgentRisk)
}

// region returns the hours as a region that is open while they last.
func (q QuietHours) region() hours.Region {
	days := q.Days
	if len(days) == 0 {
		days = []hours.Day{0, 1, 2, 3, 4, 5, 6}
	}
	return hours.Region{Name: "quiet", Zone: q.Zone, Windows: []hours.Window{{Days: days, From: q.From, To: q.To}}}
}

func (a Absence) check(person string) error {
	switch {
	case a.From.IsZero() || a.Until.IsZero() || !a.From.Before(a.Until):
		return errors.New("it needs a beginning and a later end")
	case a.Delegate == person:
		return errors.New("the delegate is the person")
	case len(a.Delegate) > maxName:
		return fmt.Errorf("the delegate has more than %d characters", maxName)
	}
	return nil
}

// Uses reports whether a notice is sent through a kind of channel.
func (s Settings) Uses(channel string, about About) bool {
	for _, r := range s.Rules {
		if r.matches(about) {
			return slices.Contains(r.Channels, channel)
		}
	}
	return true
}

func (r Rule) matches(a About) bool {
	return (len(r.Notices) == 0 || slices.Contains(r.Notices, a.Notice)) &&
		(len(r.Kinds) == 0 || slices.Contains(r.Kinds, a.Kind)) && a.Risk >= r.MinRisk
}

// NotBefore returns when a notice may be sent: now, or the end of the quiet hours.
func (s Settings) NotBefore(now time.Time, about About) time.Time {
	q := s.Quiet
	switch {
	case q == nil,
		about.Notice == desk.NoticePage && !q.HoldPages,
		about.Notice == desk.NoticeResolve, // only after a page that was sent
		q.UrgentRisk > 0 && about.Risk >= q.UrgentRisk:
		return now
	}
	until, quiet := q.region().Open(now)
	if !quiet {
		return now
	}
	return until
}

// AwayAt reports whether the person is absent at a time.
func (s Settings) AwayAt(now time.Time) bool {
	return s.Away != nil && !now.Before(s.Away.From) && now.Before(s.Away.Until)
}
