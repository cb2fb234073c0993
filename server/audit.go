package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/audit"
)

func (s *Server) registerAudit() {
	signed := operation("list-checkpoints", http.MethodGet, api.Prefix+"/audit/checkpoints", "What was signed of the audit log of the account", RoleAuditor)
	signed.Description = "Keep them: the log must extend each of them for ever. fermata audit verify --kept holds a log against what was kept."
	huma.Register(s.api, signed, s.checkpoints)
	findings := operation("audit-findings", http.MethodGet, api.Prefix+"/audit/findings", "Where the audit log, the runs and what was done do not agree", RoleAuditor)
	findings.Description = "It is found out now: the log and all runs of the account are read, which takes a while if there is much. One such call of an account is served at a time; after one that took long, the next may have to wait for up to a minute (503, Retry-After)."
	huma.Register(s.api, findings, s.findings)
}

type checkpointsInput struct {
	After int64 `query:"after" minimum:"0" doc:"Only those that sign more records."`
	Limit int   `query:"limit" minimum:"0" maximum:"1000" doc:"How many; 100 if not said."`
}

func (s *Server) checkpoints(ctx context.Context, in *checkpointsInput) (*struct{ Body api.Checkpoints }, error) {
	size := pageSize(in.Limit)
	list, public, err := s.config.Executor.AuditCheckpoints(ctx, principalOf(ctx).Account, in.After, size+1) // one more tells whether there is more
	if err != nil {
		return nil, problemOf(err)
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

// maxFindings is how many are told; all are counted.
const maxFindings = 1000

// findings compares the books of the caller's account.
func (s *Server) findings(ctx context.Context, _ *struct{}) (*struct{ Body api.Findings }, error) {
	done, err := s.heavyRead(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	found, err := s.config.Executor.Reconcile(ctx, principalOf(ctx).Account)
	if err != nil {
		return nil, problemOf(err)
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
