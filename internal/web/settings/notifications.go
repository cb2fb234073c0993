package settings

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/web/page"
)

// noticeKinds are the rows of the table of channels, in order.
var noticeKinds = []string{"notify", "remind", "page", "tell-requester"}

// weekDays are the days of quiet hours, in order.
var weekDays = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// awayTime is the form of an input of the type datetime-local.
const awayTime = "2006-01-02T15:04"

// notificationsData is the section of the profile about notifications.
type notificationsData struct {
	api.Notifications
	// Custom reports that the rules cannot be shown as a table. The form keeps them.
	Custom bool
	Rows   []noticeRow
	// Bad says why the settings were not saved.
	Bad                        string
	Quiet                      api.QuietHours
	IsQuiet                    bool
	AwayFrom, AwayTo, Delegate string
}

// noticeRow is a row of the table of channels.
type noticeRow struct {
	Kind  string
	Cells []noticeCell
}

type noticeCell struct {
	Channel string
	On      bool
}

// notificationsOf returns the section, or nil for a role without notifications.
func notificationsOf(v *page.Visit) (*notificationsData, error) {
	n, err := v.API.Notifications(v.Context())
	if err != nil && page.ProblemOf(err).Status == http.StatusForbidden {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return newNotificationsData(v, n), nil
}

func newNotificationsData(v *page.Visit, n api.Notifications) *notificationsData {
	d := &notificationsData{Notifications: n, Quiet: api.QuietHours{Zone: v.ZoneName(), From: "22:00", To: "07:00"}}
	d.Custom = slices.ContainsFunc(n.Rules, func(r api.NotificationRule) bool { return len(r.Notices) != 1 || len(r.Kinds) > 0 || r.MinRisk > 0 })
	for _, kind := range noticeKinds {
		row := noticeRow{Kind: kind}
		at := slices.IndexFunc(n.Rules, func(r api.NotificationRule) bool { return slices.Contains(r.Notices, kind) })
		for _, channel := range n.Channels {
			row.Cells = append(row.Cells, noticeCell{channel, at < 0 || slices.Contains(n.Rules[at].Channels, channel)})
		}
		d.Rows = append(d.Rows, row)
	}
	if q := n.Quiet; q != nil {
		d.Quiet, d.IsQuiet = *q, true
	}
	if a := n.Away; a != nil {
		d.AwayFrom, d.AwayTo, d.Delegate = a.From.In(v.Zone).Format(awayTime), a.Until.In(v.Zone).Format(awayTime), a.Delegate
	}
	return d
}

// WeekDays lists the days of the form.
func (d *notificationsData) WeekDays() []string { return weekDays }

// OnDay reports whether quiet hours begin on a day.
func (d *notificationsData) OnDay(day string) bool {
	return len(d.Quiet.Days) == 0 || slices.Contains(d.Quiet.Days, day)
}

// Risks lists the risks of the form.
func (d *notificationsData) Risks() []int { return []int{1, 2, 3} }

// saveNotifications saves the form. If it is not valid, the page shows it again with the reason.
func saveNotifications(v *page.Visit) (page.Response, error) {
	known, err := v.API.Notifications(v.Context())
	if err != nil {
		return nil, err
	}
	known.SaveNotifications, err = readNotifications(v, known)
	if err == nil {
		if _, err = v.API.SetNotifications(v.Context(), known.SaveNotifications); err == nil {
			return page.Redirect{To: "/me#notifications", Note: "note.notifications"}, nil
		}
	}
	p, ok := errors.AsType[*api.Problem](err)
	if !ok || p.Status != http.StatusBadRequest && p.Status != http.StatusUnprocessableEntity {
		return nil, err
	}
	d := newNotificationsData(v, known)
	d.Bad = p.Detail
	for _, f := range p.Fields {
		d.Bad += " " + f.Message
	}
	answer, err := me(v)
	if err != nil {
		return nil, err
	}
	shown := answer.(page.Page)
	data := shown.Data.(meData)
	data.Notifications = d
	shown.Nav, shown.Status, shown.Data = "/me", http.StatusBadRequest, data
	return shown, nil
}

// readNotifications reads the form. Rules that the table cannot show are kept.
func readNotifications(v *page.Visit, known api.Notifications) (save api.SaveNotifications, err error) {
	bad := func(key string) error {
		return &api.Problem{Status: http.StatusBadRequest, Code: "bad_request", Detail: v.T(key)}
	}
	save.Rules = known.Rules
	if !newNotificationsData(v, known).Custom && len(known.Channels) > 0 {
		save.Rules = nil
		for _, kind := range noticeKinds {
			chosen := []string{}
			for _, channel := range known.Channels {
				if slices.Contains(v.PostForm["send."+kind], channel) {
					chosen = append(chosen, channel)
				}
			}
			if len(chosen) < len(known.Channels) {
				save.Rules = append(save.Rules, api.NotificationRule{Notices: []string{kind}, Channels: chosen})
			}
		}
	}
	if v.PostFormValue("quiet") != "" {
		risk, _ := strconv.Atoi(v.PostFormValue("urgent")) // none if it is not a number
		save.Quiet = &api.QuietHours{
			Zone: strings.TrimSpace(v.PostFormValue("zone")), From: v.PostFormValue("from"), To: v.PostFormValue("to"), HoldPages: v.PostFormValue("hold") != "", UrgentRisk: risk,
		}
		if days := v.PostForm["day"]; len(days) == 0 {
			return save, bad("notify.nodays")
		} else if len(days) < len(weekDays) {
			save.Quiet.Days = days
		}
	}
	from, until := v.PostFormValue("awayfrom"), v.PostFormValue("awayto")
	if from == "" && until == "" {
		return save, nil
	}
	away := &api.Absence{Delegate: strings.TrimSpace(v.PostFormValue("delegate"))}
	var noFrom, noUntil error
	away.From, noFrom = time.ParseInLocation(awayTime, from, v.Zone)
	away.Until, noUntil = time.ParseInLocation(awayTime, until, v.Zone)
	if noFrom != nil || noUntil != nil {
		return save, bad("notify.badtime")
	}
	save.Away = away
	return save, nil
}
