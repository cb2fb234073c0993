package people

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/desk/people"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

const notificationsPath = api.Prefix + "/me/notifications"

type notificationsOutput struct{ Body api.Notifications }

func (h *Handlers) registerNotifications(to huma.API) {
	roles := []authn.Role{authn.RoleApprover, authn.RoleAuditor}
	huma.Register(to, endpoint.New("notifications", http.MethodGet, notificationsPath, "Get how you are notified", roles...), func(ctx context.Context, _ *struct{}) (*notificationsOutput, error) {
		me := endpoint.Principal(ctx)
		p, err := h.Executor.Person(ctx, me.Account, me.ID)
		if err != nil {
			return nil, problems.Of(err)
		}
		return &notificationsOutput{h.notificationsOf(p)}, nil
	})
	huma.Register(to, endpoint.New("set-notifications", http.MethodPut, notificationsPath, "Replace how you are notified", roles...), h.setNotifications)
}

func (h *Handlers) setNotifications(ctx context.Context, in *struct{ Body api.SaveNotifications }) (*notificationsOutput, error) {
	me := endpoint.Principal(ctx)
	settings, err := settingsOf(in.Body)
	if err == nil {
		err = settings.Check(me.ID)
	}
	if err != nil {
		return nil, problems.New("bad_request", "the settings are not valid: %s", err)
	}
	if _, err = h.Executor.SetNotifications(ctx, me.Account, me.From(), settings); err != nil {
		return nil, problems.Of(err)
	}
	p, err := h.Executor.Person(ctx, me.Account, me.ID)
	if err != nil {
		return nil, problems.Of(err)
	}
	return &notificationsOutput{h.notificationsOf(p)}, nil
}

// settingsOf converts settings of the API.
func settingsOf(in api.SaveNotifications) (s people.Settings, err error) {
	for _, r := range in.Rules {
		rule := people.Rule{Kinds: r.Kinds, MinRisk: r.MinRisk, Channels: r.Channels}
		for _, n := range r.Notices {
			rule.Notices = append(rule.Notices, desk.NoticeKind(n))
		}
		s.Rules = append(s.Rules, rule)
	}
	if q := in.Quiet; q != nil {
		s.Quiet = &people.QuietHours{Zone: q.Zone, HoldPages: q.HoldPages, UrgentRisk: q.UrgentRisk}
		for _, name := range q.Days {
			var day hours.Day
			if err := day.UnmarshalText([]byte(name)); err != nil {
				return s, err
			}
			s.Quiet.Days = append(s.Quiet.Days, day)
		}
		if err := s.Quiet.From.UnmarshalText([]byte(q.From)); err != nil {
			return s, err
		}
		if err := s.Quiet.To.UnmarshalText([]byte(q.To)); err != nil {
			return s, err
		}
	}
	if a := in.Away; a != nil {
		s.Away = &people.Absence{From: a.From.UTC(), Until: a.Until.UTC(), Delegate: a.Delegate}
	}
	return s, nil
}

func (h *Handlers) notificationsOf(p executor.Person) api.Notifications {
	n := api.Notifications{Addresses: []api.NotificationAddress{}, Channels: []string{}}
	n.Channels = append(n.Channels, h.Executor.PersonalKinds()...)
	for _, a := range p.Addresses {
		n.Addresses = append(n.Addresses, api.NotificationAddress{ID: a.ID, Channel: a.Channel, Name: a.Name, AddedAt: a.At})
	}
	for _, r := range p.Settings.Rules {
		rule := api.NotificationRule{Kinds: r.Kinds, MinRisk: r.MinRisk, Channels: append([]string{}, r.Channels...)}
		for _, kind := range r.Notices {
			rule.Notices = append(rule.Notices, string(kind))
		}
		n.Rules = append(n.Rules, rule)
	}
	if q := p.Settings.Quiet; q != nil {
		n.Quiet = &api.QuietHours{Zone: q.Zone, From: q.From.String(), To: q.To.String(), HoldPages: q.HoldPages, UrgentRisk: q.UrgentRisk}
		for _, day := range q.Days {
			n.Quiet.Days = append(n.Quiet.Days, day.String())
		}
	}
	if a := p.Settings.Away; a != nil {
		n.Away = &api.Absence{From: a.From, Until: a.Until, Delegate: a.Delegate}
	}
	return n
}
