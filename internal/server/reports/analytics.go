package reports

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

func (h *Handlers) registerAnalytics(to huma.API) {
	huma.Register(to, endpoint.New("analytics", http.MethodGet, api.Prefix+"/analytics", "Report decision times, counts, approvers and rules", authn.RoleApprover, authn.RoleAuditor), h.analytics)
}

type analyticsInput struct {
	Days int    `query:"days" minimum:"1" maximum:"3660" default:"30" doc:"How many days the report covers."`
	Zone string `query:"zone" maxLength:"64" doc:"IANA time zone for working hours, for example Europe/Zurich. UTC by default."`
}

// analytics shows other people's names to admins and auditors only; other callers see themselves.
func (h *Handlers) analytics(ctx context.Context, in *analyticsInput) (*struct{ Body analytics.Report }, error) {
	me := endpoint.Principal(ctx)
	zone, err := time.LoadLocation(in.Zone)
	if err != nil {
		return nil, problems.New("bad_request", "unknown time zone %q", in.Zone)
	}
	query := analytics.Query{Since: time.Now().AddDate(0, 0, -in.Days), Zone: zone}
	if !me.Has(authn.RoleAuditor) {
		query.Person, query.HideRestricted = me.ID, true
	}
	done, err := h.HeavyRead(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	report, err := h.Executor.Analytics(ctx, me.Account, query)
	if err != nil {
		return nil, problems.Of(err)
	}
	return &struct{ Body analytics.Report }{report}, nil
}
