package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/server/internal/endpoint"
	"github.com/fermata-go/fermata/server/internal/problems"
)

func (s *Server) registerAudit() {
	signed := endpoint.New("list-checkpoints", http.MethodGet, api.Prefix+"/audit/checkpoints", "List the signed checkpoints of the audit log", authn.RoleAuditor)
	signed.Description = "Keep them outside the server: the log must extend each of them. fermata audit verify --kept compares a log with kept checkpoints."
	huma.Register(s.api, signed, s.checkpoints)
	findings := endpoint.New("audit-findings", http.MethodGet, api.Prefix+"/audit/findings", "Reconcile the audit log, the runs and the effects", authn.RoleAuditor)
	findings.Description = "The result is computed on request from the log and all runs of the account, which can take a while. One such call per account runs at a time. After a long one, the next call may be rejected for up to a minute (503, Retry-After)."
	huma.Register(s.api, findings, s.findings)
}

type checkpointsInput struct {
	After int64 `query:"after" minimum:"0" doc:"Return only checkpoints that cover more records than this."`
	Limit int   `query:"limit" minimum:"0" maximum:"1000" doc:"Page size, 100 by default."`
}

func (s *Server) checkpoints(ctx context.Context, in *checkpointsInput) (*struct{ Body api.Checkpoints }, error) {
	size := endpoint.PageSize(in.Limit)
	// one more shows whether there is a next page
	list, public, err := s.config.Executor.AuditCheckpoints(ctx, endpoint.Principal(ctx).Account, in.After, size+1)
	if err != nil {
		return nil, problems.Of(err)
	}
	out := api.Checkpoints{Items: []api.Checkpoint{}, PublicKey: public}
	if len(list) > size {
		list = list[:size]
		out.Next = list[size-1].Size
	}
	for _, c := range list {
		out.Items = append(out.Items, api.Checkpoint{Size: c.Size, Note: string(c.Note)})
	}
	return &struct{ Body api.Checkpoints }{out}, nil
}

// maxFindings is how many findings a response lists; all are counted.
const maxFindings = 1000

// findings reconciles the records of the caller's account.
func (s *Server) findings(ctx context.Context, _ *struct{}) (*struct{ Body api.Findings }, error) {
	done, err := s.heavyRead(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	found, err := s.config.Executor.Reconcile(ctx, endpoint.Principal(ctx).Account)
	if err != nil {
		return nil, problems.Of(err)
	}
	out := api.Findings{Items: []api.Finding{}, Count: make(map[string]int)}
	for _, code := range audit.FindingCodes {
		out.Count[string(code)] = 0
	}
	for n, f := range found {
		if out.Count[string(f.Code)]++; n < maxFindings {
			out.Items = append(out.Items, api.Finding{Severity: string(f.Severity), Code: string(f.Code), RunID: f.Run, Request: f.Interrupt, Seq: f.Seq, Text: f.Text})
		}
	}
	return &struct{ Body api.Findings }{out}, nil
}
