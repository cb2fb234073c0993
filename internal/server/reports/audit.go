package reports

import (
	"bytes"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

// ndjson is the media type of newline-delimited JSON.
const ndjson = "application/x-ndjson"

func (h *Handlers) registerAudit(to huma.API) {
	signed := endpoint.New("list-checkpoints", http.MethodGet, api.Prefix+"/audit/checkpoints", "List the signed checkpoints of the audit log", authn.RoleAuditor)
	signed.Description = "Keep them outside the server: the log must extend each of them. fermata audit verify --kept compares a log with kept checkpoints."
	huma.Register(to, signed, h.checkpoints)
	findings := endpoint.New("audit-findings", http.MethodGet, api.Prefix+"/audit/findings", "Reconcile the audit log, the runs and the effects", authn.RoleAuditor)
	findings.Description = "The result is computed on request from the log and all runs of the account, which can take a while. One such call per account runs at a time. Others wait up to two seconds and are then rejected (503, Retry-After)."
	huma.Register(to, findings, h.findings)
	export := endpoint.New("read-audit", http.MethodGet, api.Prefix+"/audit", "Export the audit log of the account as stored, one record per line", authn.RoleAuditor)
	export.Responses = storedLines()
	huma.Register(to, export, h.readAudit)
	h.registerAuditRecords(to)
}

// storedLines describes records exactly as they are stored.
func storedLines() map[string]*huma.Response {
	return map[string]*huma.Response{"200": {
		Description: "One JSON object per line. Changing any byte breaks the hash chain.", Content: map[string]*huma.MediaType{ndjson: {Schema: &huma.Schema{Type: "string"}}},
	}}
}

type checkpointsInput struct {
	After int64 `query:"after" minimum:"0" doc:"Return only checkpoints that cover more records than this."`
	Limit int   `query:"limit" minimum:"0" maximum:"1000" doc:"Page size, 100 by default."`
}

func (h *Handlers) checkpoints(ctx context.Context, in *checkpointsInput) (*struct{ Body api.Checkpoints }, error) {
	size := endpoint.PageSize(in.Limit)
	// one more shows whether there is a next page
	list, public, err := h.Executor.AuditCheckpoints(ctx, endpoint.Principal(ctx).Account, in.After, size+1)
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
func (h *Handlers) findings(ctx context.Context, _ *struct{}) (*struct{ Body api.Findings }, error) {
	done, err := h.HeavyRead(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	found, err := h.Executor.Reconcile(ctx, endpoint.Principal(ctx).Account)
	if err != nil {
		return nil, problems.Of(err)
	}
	out := api.Findings{Items: []api.Finding{}, Count: make(map[string]int)}
	for _, code := range reconcile.FindingCodes {
		out.Count[string(code)] = 0
	}
	for n, f := range found {
		if out.Count[string(f.Code)]++; n < maxFindings {
			out.Items = append(out.Items, api.Finding{Severity: string(f.Severity), Code: string(f.Code), RunID: f.Run, Request: f.Interrupt, Seq: f.Seq, Text: f.Text})
		}
	}
	return &struct{ Body api.Findings }{out}, nil
}

type auditInput struct {
	After int64 `query:"after" minimum:"0" doc:"The sequence number of the last record already read."`
	Limit int   `query:"limit" minimum:"0" maximum:"1000" doc:"Page size, 1000 by default."`
}

// readAudit writes records exactly as they are stored: their hashes cover every byte.
func (h *Handlers) readAudit(ctx context.Context, in *auditInput) (*huma.StreamResponse, error) {
	list, err := h.Executor.AuditLines(ctx, endpoint.Principal(ctx).Account, in.After, in.Limit)
	if err != nil {
		return nil, problems.Of(err)
	}
	lines := make([][]byte, len(list))
	for i, line := range list {
		lines[i] = line.Raw
	}
	return writeLines(lines), nil
}

// writeLines returns records exactly as they are stored.
func writeLines(lines [][]byte) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", ndjson)
		var text bytes.Buffer
		for _, line := range lines {
			text.Write(line)
			text.WriteByte('\n')
		}
		_, _ = hc.BodyWriter().Write(text.Bytes()) // a disconnected client needs no error
	}}
}
