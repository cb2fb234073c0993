package executor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/desk/people"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/oncall"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/timespan"
)

// directMessages is a channel that reaches people one by one. It records what it sent.
type directMessages struct {
	kind string
	fail func(to string) error

	mu   sync.Mutex
	sent []sentMessage
}

type sentMessage struct {
	at      time.Time
	account string
	to      string
	kind    desk.NoticeKind
	outcome string
	card    channel.Card
	again   bool
}

var _ channel.Personal = (*directMessages)(nil)

func (d *directMessages) Kind() string { return d.kind }

func (d *directMessages) PersonalAddress(sender string) string {
	_, user, _ := strings.Cut(sender, "/")
	return user
}

func (d *directMessages) Send(_ context.Context, m channel.Message) (string, error) {
	if d.fail != nil {
		if err := d.fail(m.To); err != nil {
			return "", err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent = append(d.sent, sentMessage{time.Now().UTC(), m.Account, m.To, m.Kind, m.Card.Outcome, m.Card, m.Again})
	return m.Delivery, nil
}

// all returns what was sent so far.
func (d *directMessages) all() []sentMessage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.sent)
}

// got returns the sorted receivers of a kind of notice.
func (d *directMessages) got(kind desk.NoticeKind) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var to []string
	for _, m := range d.sent {
		if m.kind == kind {
			to = append(to, m.to)
		}
	}
	slices.Sort(to)
	return strings.Join(to, " ")
}

// when returns when a receiver got the first notice of a kind; "" if never.
func (d *directMessages) when(kind desk.NoticeKind, to string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.sent {
		if m.kind == kind && m.to == to {
			return m.at.Format("Mon 15:04")
		}
	}
	return ""
}

// notifying returns an office with a route, in which people are reached by direct messages.
func notifying(t *testing.T, s store.Store, dm *directMessages, change func(*executor.Config), steps ...desk.Step) *executor.Executor {
	t.Helper()
	return office(t, s, new(dropper), func(c *executor.Config) {
		c.Poll = 15 * time.Second
		c.Log = slog.New(slog.DiscardHandler)
		c.Desk.Routes = map[string]desk.Route{"default": {Name: "default", Steps: append(slices.Clone(steps), desk.Step{At: timespan.Duration(48 * time.Hour), Expire: "stale"})}}
		c.Desk.Channels = []channel.Channel{dm}
		// the rule limits the deadline to an hour; quiet hours are longer
		c.Desk.Policy, c.RequestTimeout = loadRules(t, strings.Replace(twoPeople, "deadline: 1h", "deadline: 72h", 1)), 72*time.Hour
		if change != nil {
			change(c)
		}
	})
}

// linkTo links an account of the channel dm to a person.
func linkTo(t *testing.T, e *executor.Executor, account, who string) {
	t.Helper()
	token, err := e.NewLinkToken(t.Context(), channel.Sender{Account: account, Channel: "dm", ID: "T1/" + who, Name: who})
	if err == nil {
		_, err = e.UseLinkToken(t.Context(), account, token, person(who), []string{"approver"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func set(t *testing.T, e *executor.Executor, person string, settings people.Settings) {
	t.Helper()
	if _, err := e.SetNotifications(t.Context(), "acme", by(person), settings); err != nil {
		t.Fatal(err)
	}
}

// withdraw cancels the run, which withdraws its request.
func withdraw(t *testing.T, e *executor.Executor) {
	t.Helper()
	if err := e.Cancel(t.Context(), "acme", "drop-1", by("req")); err != nil {
		t.Fatal(err)
	}
}

// notReached lists the failures that the request shows.
func notReached(t *testing.T, e *executor.Executor, id string) string {
	t.Helper()
	doc, err := e.RequestDocument(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, event := range doc.Log {
		if event.Type == desk.EventNoticeFailed {
			all = append(all, event.Detail["target"]+" "+event.Detail["code"])
		}
	}
	return strings.Join(all, ", ")
}

// The clock of synctest starts on Saturday, 2000-01-01 00:00 UTC.
var rotaStart = time.Date(1999, 12, 27, 9, 0, 0, 0, time.UTC)

// Targets that name people reach the linked accounts of these people. The person who asked cannot
// decide, and is not asked.
func TestTargets_ThatNamePeopleReachTheirAddresses(t *testing.T) {
	for _, c := range []struct{ target, reached, missed string }{
		{"group:dba", "ann bob", ""},
		{"user:ann", "ann", ""},
		{"user:req", "req", ""}, // the route names them
		{"approvers", "ann bob eve", ""},
		{"requester", "req", ""},
		{"oncall:db", "bob", ""},
		{"oncall:gap", "", "oncall:gap no_one_on_call"},
		{"oncall:down", "", "oncall:down directory_unavailable"},
		{"group:empty", "", "group:empty empty_group"},
		{"group:asker", "", "group:asker excluded"},
		{"user:nolink", "", ""}, // they have the inbox
		{"group:unknown", "", ""},
	} {
		t.Run(c.target, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dm := &directMessages{kind: "dm"}
				e := notifying(t, memory.NewStore(nil), dm, func(config *executor.Config) {
					groups := config.Desk.Directory.(desk.StaticDirectory)
					groups["group:empty"], groups["group:asker"] = nil, []string{"req"}
					config.Desk.Directory = oncall.Directory{Groups: groups, Schedules: map[string]oncall.Schedule{
						"db": oncall.Rota{Start: rotaStart, People: []string{"bob"}}, "gap": oncall.Rota{Start: rotaStart, People: []string{"", "ann"}}, "down": downSchedule{},
					}}
				}, desk.Step{Notify: []string{c.target}})
				for _, person := range []string{"ann", "bob", "eve", "req"} {
					linkTo(t, e, "acme", person)
					linkTo(t, e, "other", person)
				}
				id := startAs(t, e, "req").Interrupts[0].ID
				e.StartWorkers()
				time.Sleep(time.Minute)
				if got := dm.got(desk.NoticeNotify); got != c.reached {
					t.Errorf("reached %q, not %q", got, c.reached)
				}
				if got := notReached(t, e, id); got != c.missed {
					t.Errorf("not reached: %q, not %q", got, c.missed)
				}
				doc, err := e.RequestDocument(t.Context(), "acme", id)
				if err != nil || (len(doc.Deliveries) == 0) != (c.missed != "") {
					t.Errorf("delivered to %+v, %v", doc.Deliveries, err)
				}
			})
		})
	}
}

type downSchedule struct{}

func (downSchedule) OnCall(context.Context, time.Time) ([]string, error) {
	return nil, errors.New("down")
}

// A rota hands over at its local time while a request waits: each page reaches the person on
// call then, and the end reaches the people that were paged.
func TestOnCall_PageFollowsTheHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kolkata, err := time.LoadLocation("Asia/Kolkata")
		if err != nil {
			t.Fatal(err)
		}
		dm := &directMessages{kind: "dm"}
		rota := oncall.Rota{Zone: kolkata, Days: 1, Start: time.Date(1999, 12, 31, 9, 0, 0, 0, kolkata), People: []string{"ann", "bob", ""}}
		e := notifying(t, memory.NewStore(nil), dm, func(config *executor.Config) {
			config.Desk.Directory = oncall.Directory{Groups: config.Desk.Directory.(desk.StaticDirectory), Schedules: map[string]oncall.Schedule{"db": rota}}
		}, desk.Step{At: timespan.Duration(3 * time.Hour), Page: []string{"oncall:db"}}, desk.Step{At: timespan.Duration(4 * time.Hour), Page: []string{"oncall:db"}}, desk.Step{At: timespan.Duration(28 * time.Hour), Page: []string{"oncall:db"}})
		linkTo(t, e, "acme", "ann")
		linkTo(t, e, "acme", "bob")
		id := startAs(t, e, "req").Interrupts[0].ID
		e.StartWorkers()
		time.Sleep(3*time.Hour + time.Minute) // 08:31 in Kolkata
		if got := dm.got(desk.NoticePage); got != "ann" {
			t.Errorf("before the handover %q was paged", got)
		}
		time.Sleep(time.Hour)
		if got := dm.got(desk.NoticePage); got != "ann bob" {
			t.Errorf("after the handover %q were paged", got)
		}
		time.Sleep(24 * time.Hour)
		if got := notReached(t, e, id); got != "oncall:db no_one_on_call" {
			t.Errorf("in the gap: %q", got)
		}
		withdraw(t, e)
		time.Sleep(time.Minute)
		if got := dm.got(desk.NoticeResolve); got != "ann bob" {
			t.Errorf("the end reached %q", got)
		}
	})
}

// A delegate is told instead of an absent person, if their decision counts. They get no rights.
func TestAway_DelegateMustBeEligible(t *testing.T) {
	absence := func(delegate string) people.Settings {
		return people.Settings{Away: &people.Absence{From: time.Now(), Until: time.Now().Add(time.Hour), Delegate: delegate}}
	}
	for name, c := range map[string]struct {
		ann, bob        string // their delegates; "-" for no absence
		reached, missed string
	}{
		"eligible":          {ann: "bob", bob: "-", reached: "bob"},
		"none":              {ann: "", bob: "-", missed: "user:ann away"},
		"another group":     {ann: "eve", bob: "-", missed: "user:ann delegate_not_eligible"}, // ann is an owner and a dba
		"requester":         {ann: "req", bob: "-", missed: "user:ann delegate_not_eligible"},
		"stranger":          {ann: "zoe", bob: "-", missed: "user:ann delegate_not_eligible"},
		"each other":        {ann: "bob", bob: "ann", missed: "user:ann delegate_not_eligible"},
		"delegate is away":  {ann: "bob", bob: "", missed: "user:ann away"},
		"delegate's choice": {ann: "bob", bob: "cyd", reached: "cyd"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dm := &directMessages{kind: "dm"}
				e := notifying(t, memory.NewStore(nil), dm, func(config *executor.Config) {
					config.Desk.Directory = desk.StaticDirectory{"group:dba": {"ann", "bob", "cyd", "req"}, "group:owners": {"ann", "bob", "cyd", "req"}}
					if name == "another group" {
						config.Desk.Directory = desk.StaticDirectory{"group:dba": {"ann", "bob"}, "group:owners": {"ann", "eve"}}
					}
				}, desk.Step{Notify: []string{"user:ann"}}, desk.Step{At: timespan.Duration(2 * time.Hour), Remind: []string{"user:ann"}})
				for _, person := range []string{"ann", "bob", "cyd", "eve", "req", "zoe"} {
					linkTo(t, e, "acme", person)
				}
				set(t, e, "ann", absence(c.ann))
				if c.bob != "-" {
					set(t, e, "bob", absence(c.bob))
				}
				id := startAs(t, e, "req").Interrupts[0].ID
				e.StartWorkers()
				time.Sleep(time.Minute)
				if got, missed := dm.got(desk.NoticeNotify), notReached(t, e, id); got != c.reached || missed != c.missed {
					t.Errorf("reached %q, missed %q", got, missed)
				}
				// votes are counted for the groups of the voter, whatever the delegations are
				for _, stranger := range []string{"zoe", "req"} {
					if _, err := says(t, e, stranger, "no-"+stranger, yes); err == nil {
						t.Errorf("the vote of %s was accepted", stranger)
					}
				}
				time.Sleep(3 * time.Hour) // the absence is over
				if got := dm.got(desk.NoticeRemind); got != "ann" {
					t.Errorf("after the absence %q was reminded", got)
				}
			})
		})
	}
}

// A delegate and the absent person are two people with one vote each.
func TestAway_DelegateHasOneVote(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := office(t, s, d, nil)
		asked := startAs(t, e, "req")
		set(t, e, "eve", people.Settings{Away: &people.Absence{From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour), Delegate: "bob"}})
		for n := range 2 {
			outcome, err := says(t, e, "bob", fmt.Sprint("r", n), yes)
			if err != nil || len(waits(t, outcome).Interrupts) != 1 || d.dropped.Load() != 0 {
				t.Fatalf("bob decided for two groups: %#v, %v", outcome, err)
			}
		}
		doc, err := e.RequestDocument(t.Context(), "acme", asked.Interrupts[0].ID)
		if err != nil || doc.VoteProgress.Have != 1 || len(doc.VoteProgress.Missing) != 1 {
			t.Errorf("progress %+v, %v", doc.VoteProgress, err)
		}
	})
}

// Quiet hours delay a notice to their end. Pages and urgent requests are sent at once, and the
// inbox has the request all the time.
func TestQuietHours_DelayNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dm := &directMessages{kind: "dm"}
		s := memory.NewStore(nil)
		e := notifying(t, s, dm, nil, desk.Step{Notify: []string{"group:dba"}}, desk.Step{At: timespan.Duration(time.Hour), Page: []string{"user:ann", "user:bob"}})
		linkTo(t, e, "acme", "ann")
		linkTo(t, e, "acme", "bob")
		quiet := people.QuietHours{Zone: "Asia/Tokyo", From: hours.At(22, 0), To: hours.At(13, 0)} // 09:00 now, until 04:00 UTC
		hold := quiet
		hold.HoldPages = true
		set(t, e, "ann", people.Settings{Quiet: &quiet})
		set(t, e, "bob", people.Settings{Quiet: &hold})
		startAs(t, e, "req")
		e.StartWorkers()
		time.Sleep(2 * time.Hour)
		other := notifying(t, s, dm, nil) // the delay survives a restart
		if err := e.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		other.StartWorkers()
		time.Sleep(6 * time.Hour)
		got := []string{dm.when(desk.NoticeNotify, "ann"), dm.when(desk.NoticePage, "ann"), dm.when(desk.NoticeNotify, "bob"), dm.when(desk.NoticePage, "bob")}
		if want := []string{"Sat 04:00", "Sat 01:00", "Sat 04:00", "Sat 04:00"}; !slices.Equal(got, want) {
			t.Errorf("sent at %q, not %q", got, want)
		}
	})
}

// A request that is decided during quiet hours is not announced after them.
func TestQuietHours_DecidedRequestIsNotAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dm := &directMessages{kind: "dm"}
		e := notifying(t, memory.NewStore(nil), dm, nil, desk.Step{Notify: []string{"group:dba"}})
		linkTo(t, e, "acme", "ann")
		set(t, e, "ann", people.Settings{Quiet: &people.QuietHours{Zone: "UTC", From: hours.At(0, 0), To: hours.At(6, 0)}})
		startAs(t, e, "req")
		e.StartWorkers()
		time.Sleep(time.Hour)
		withdraw(t, e)
		time.Sleep(12 * time.Hour)
		if sent := dm.all(); len(sent) != 0 {
			t.Errorf("sent %+v", sent)
		}
	})
}

// The requester is told how the request ended, through their channels.
func TestRequester_IsToldTheOutcome(t *testing.T) {
	for outcome, end := range map[string]func(t *testing.T, e *executor.Executor, id string){
		"approved": func(t *testing.T, e *executor.Executor, _ string) {
			for _, who := range []string{"bob", "eve"} {
				if _, err := says(t, e, who, who, yes); err != nil {
					t.Fatal(err)
				}
			}
		},
		"rejected": func(t *testing.T, e *executor.Executor, _ string) {
			if _, err := says(t, e, "bob", "r1", `{"verb":"reject","reason":"too risky"}`); err != nil {
				t.Fatal(err)
			}
		},
		"withdrawn": func(t *testing.T, e *executor.Executor, _ string) { withdraw(t, e) },
		"expired":   func(*testing.T, *executor.Executor, string) { time.Sleep(49 * time.Hour) },
	} {
		t.Run(outcome, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dm := &directMessages{kind: "dm"}
				e := notifying(t, memory.NewStore(nil), dm, nil, desk.Step{Notify: []string{"inbox"}})
				linkTo(t, e, "acme", "req")
				id := startAs(t, e, "req").Interrupts[0].ID
				e.StartWorkers()
				time.Sleep(time.Minute)
				end(t, e, id)
				time.Sleep(time.Minute)
				if sent := dm.all(); len(sent) != 1 || sent[0].kind != desk.NoticeRequester || sent[0].to != "req" || !strings.Contains(sent[0].outcome, outcome) {
					t.Errorf("sent %+v", sent)
				}
			})
		})
	}
}

// Rules choose channels, and a revoked link is not used.
func TestSettings_RulesAndRevokedLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dm := &directMessages{kind: "dm"}
		e := notifying(t, memory.NewStore(nil), dm, nil, desk.Step{Notify: []string{"group:dba"}}, desk.Step{At: timespan.Duration(time.Minute), Remind: []string{"group:dba"}})
		linkTo(t, e, "acme", "ann")
		linkTo(t, e, "acme", "bob")
		set(t, e, "ann", people.Settings{Rules: []people.Rule{{Notices: []desk.NoticeKind{desk.NoticeRemind}}}})
		if err := e.RevokeChannelLink(t.Context(), channel.Sender{Account: "acme", Channel: "dm", ID: "T1/bob"}, "bob", person("bob")); err != nil {
			t.Fatal(err)
		}
		startAs(t, e, "req")
		e.StartWorkers()
		time.Sleep(time.Hour)
		if notified, reminded := dm.got(desk.NoticeNotify), dm.got(desk.NoticeRemind); notified != "ann" || reminded != "" {
			t.Errorf("notified %q, reminded %q", notified, reminded)
		}
		if p, err := e.Person(t.Context(), "acme", "bob"); err != nil || len(p.Addresses) != 0 {
			t.Errorf("the addresses of bob are %+v, %v", p.Addresses, err)
		}
	})
}

// An address that the channel reports as gone is removed, with an audit record.
func TestAddresses_AddRemoveAndGone(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		dm := &directMessages{kind: "dm", fail: func(string) error { return &channel.Error{Code: channel.CodeGone, Permanent: true} }}
		e := notifying(t, s, dm, func(c *executor.Config) { c.Poll = 5 * time.Millisecond }, desk.Step{Notify: []string{"user:ann"}})
		kept, err := e.AddAddress(t.Context(), "acme", by("ann"), "other", "laptop", "Laptop")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := e.AddAddress(t.Context(), "acme", by("ann"), "dm", "phone", "Phone"); err != nil {
				t.Fatal(err)
			}
		}
		id := startAs(t, e, "req").Interrupts[0].ID
		e.StartWorkers()
		addresses := func(account, person string) []executor.PersonAddress {
			p, err := e.Person(t.Context(), account, person)
			if err != nil {
				t.Fatal(err)
			}
			return p.Addresses
		}
		if len(addresses("acme", "ann")) > 2 {
			t.Errorf("the same address twice: %+v", addresses("acme", "ann"))
		}
		eventually(t, func() bool { return len(addresses("acme", "ann")) == 1 })
		eventually(t, func() bool { return notReached(t, e, id) == "user:ann (dm) gone" })
		if len(addresses("other", "ann")) != 0 || len(addresses("acme", "bob")) != 0 {
			t.Error("I8: an address is visible to another person or account")
		}
		if err := e.RemoveAddress(t.Context(), "acme", by("bob"), kept.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("bob removed an address of ann: %v", err)
		}
		if err := e.RemoveAddress(t.Context(), "acme", by("ann"), kept.ID); err != nil {
			t.Fatal(err)
		}
		changes := recorded[audit.NotificationsChanged](t, s)
		var what []string
		for _, c := range changes {
			what = append(what, c.What+" "+c.Channel)
		}
		if want := []string{"address_added other", "address_added dm", "address_added dm", "address_removed dm", "address_removed other"}; !slices.Equal(what, want) {
			t.Errorf("audit records %q", what)
		}
	})
}

func TestI8_SettingsOfAnotherAccountAreNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dm := &directMessages{kind: "dm"}
		e := notifying(t, memory.NewStore(nil), dm, nil, desk.Step{Notify: []string{"group:dba"}})
		linkTo(t, e, "other", "ann")
		linkTo(t, e, "acme", "bob")
		if _, err := e.SetNotifications(t.Context(), "other", by("bob"), people.Settings{Rules: []people.Rule{{}}}); err != nil {
			t.Fatal(err)
		}
		startAs(t, e, "req")
		e.StartWorkers()
		time.Sleep(time.Minute)
		if got := dm.got(desk.NoticeNotify); got != "bob" {
			t.Errorf("reached %q", got)
		}
	})
}
