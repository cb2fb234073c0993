package reports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/store"
)

func (h *Handlers) registerAuditRecords(to huma.API) {
	list := endpoint.New("list-audit-records", http.MethodGet, api.Prefix+"/audit/records", "List audit records, newest first", authn.RoleAuditor)
	list.Description = "A search with filters reads at most 20000 records per call, and one such call per account runs at a time. Continue with next. For the stored bytes, export the log."
	huma.Register(to, list, h.auditRecords)
	about := endpoint.New("read-audit-of-request", http.MethodGet, api.Prefix+"/audit/requests/{id}", "Export the audit records about a request as stored, one per line", authn.RoleAuditor)
	about.Description = "The whole log is searched: one such call per account runs at a time."
	about.Responses = storedLines()
	huma.Register(to, about, h.auditAbout)
	bundle := endpoint.New("audit-bundle", http.MethodGet, api.Prefix+"/audit/requests/{id}/bundle", "Get the evidence of a request as one file", authn.RoleAuditor)
	bundle.Description = "A page for people, which fermata audit check checks offline: the records with their proofs, the texts that people saw, and the arguments and answers. Of a request that the caller may not see it has the records only. The whole log is searched: one such call per account runs at a time."
	bundle.Responses = map[string]*huma.Response{"200": {
		Description: "The page, with its data as JSON in it.", Content: map[string]*huma.MediaType{"text/html": {Schema: &huma.Schema{Type: "string"}}},
	}}
	huma.Register(to, bundle, h.auditBundle)
	trail := endpoint.New("audit-trail", http.MethodGet, api.Prefix+"/audit/runs/{stateKey}/trail", "Compare what a run proposed, what was approved and what was executed", authn.RoleAuditor)
	trail.Description = "One entry for each action, as the log has it, including the receipts of external agents. The path names a run by its state key or id. The whole log is searched: one such call per account runs at a time."
	trail.Responses = map[string]*huma.Response{"200": {
		Description: "The actions in the order in which they were proposed. Equal digests mean the same action with the same arguments.", Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: "array", Items: &huma.Schema{Type: "object", AdditionalProperties: true}}}},
	}}
	huma.Register(to, trail, h.auditTrail)
	verify := endpoint.New("verify-audit", http.MethodGet, api.Prefix+"/audit/verification", "Verify the audit log against its signed checkpoints", authn.RoleAuditor)
	verify.Description = "Every record is read: one such call per account runs at a time. The server verifies its own log, so this is not a substitute for fermata audit verify with kept checkpoints."
	huma.Register(to, verify, h.verifyAudit)
	prove := endpoint.New("prove-audit-record", http.MethodGet, api.Prefix+"/audit/records/{seq}/proof", "Prove that a record is in the signed audit log", authn.RoleAuditor)
	prove.Description = "fermata audit check checks the file offline, with the public key of the log. A record that no checkpoint covers yet has no proof (404)."
	prove.Responses = map[string]*huma.Response{"200": {
		Description: "The proof, a JSON file.", Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: "object", AdditionalProperties: true}}},
	}}
	huma.Register(to, prove, h.proveAudit)
}

type auditRecordsInput struct {
	Before  int64     `query:"before" minimum:"0" doc:"Return only records with a lower sequence number."`
	Limit   int       `query:"limit" minimum:"0" maximum:"1000" doc:"Page size, 100 by default."`
	Text    string    `query:"q" maxLength:"200" doc:"Text that the stored record contains, in any case."`
	Kind    string    `query:"kind" maxLength:"64" doc:"The kind of record, for example request.decided."`
	Actor   string    `query:"actor" maxLength:"1000" doc:"The id of who acted."`
	Request string    `query:"request" maxLength:"1000" doc:"The id of a request."`
	Since   time.Time `query:"since" doc:"Return only records from this time on."`
	Until   time.Time `query:"until" doc:"Return only records before this time."`
}

// auditRecords lists records. Only a search can read many of them.
func (h *Handlers) auditRecords(ctx context.Context, in *auditRecordsInput) (*struct{ Body api.AuditRecords }, error) {
	query := executor.AuditQuery{
		Before: in.Before, Limit: endpoint.PageSize(in.Limit), Text: in.Text, Kind: in.Kind, Actor: in.Actor, Request: in.Request, Since: in.Since, Until: in.Until,
	}
	if query.IsFiltered() {
		done, err := h.HeavyRead(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	page, err := h.Executor.AuditRecords(ctx, endpoint.Principal(ctx).Account, query)
	if err != nil {
		return nil, problems.Of(err)
	}
	out := api.AuditRecords{Items: []api.AuditRecord{}, Next: page.Next, Scanned: page.Scanned}
	for _, line := range page.Lines {
		out.Items = append(out.Items, auditRecord(line))
	}
	return &struct{ Body api.AuditRecords }{out}, nil
}

// auditRecord reads a stored record.
func auditRecord(line store.AuditLine) api.AuditRecord {
	var read struct {
		Time  time.Time       `json:"time"`
		Kind  string          `json:"kind"`
		Actor audit.Actor     `json:"actor"`
		Place audit.Location  `json:"place"`
		Body  json.RawMessage `json:"body"`
	}
	if json.Unmarshal(line.Raw, &read) != nil {
		return api.AuditRecord{Seq: line.Seq}
	}
	return api.AuditRecord{Seq: line.Seq, Time: read.Time, Kind: read.Kind, Actor: read.Actor.Principal, RunID: read.Place.Run, Request: read.Place.Interrupt, Body: read.Body}
}

type auditAboutInput struct {
	ID string `path:"id"`
}

// auditAbout writes the records about a request.
func (h *Handlers) auditAbout(ctx context.Context, in *auditAboutInput) (*huma.StreamResponse, error) {
	done, err := h.HeavyRead(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	lines, err := h.Executor.AuditAbout(ctx, endpoint.Principal(ctx).Account, in.ID)
	if err != nil {
		return nil, problems.Of(err)
	}
	if len(lines) == 0 {
		return nil, problems.New("not_found", "the audit log has no records about this request")
	}
	return writeLines(lines), nil
}

// auditBundle writes the evidence of a request.
func (h *Handlers) auditBundle(ctx context.Context, in *auditAboutInput) (*huma.StreamResponse, error) {
	done, err := h.HeavyRead(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	me := endpoint.Principal(ctx)
	bundle, err := h.Executor.AuditBundle(ctx, me.Account, in.ID, func(r desk.Request) (bool, error) { return h.Executor.MaySee(r, me.Viewer()) })
	var page bytes.Buffer
	if err == nil {
		err = bundle.Write(&page)
	}
	if errors.Is(err, audit.ErrNotFound) {
		return nil, problems.New("not_found", "the audit log has no records about this request")
	}
	if err != nil {
		return nil, problems.Of(err)
	}
	return download("text/html; charset=utf-8", "fermata-evidence-"+in.ID+".html", page.Bytes()), nil
}

type auditTrailInput struct {
	StateKey string `path:"stateKey" maxLength:"512"`
}

// auditTrail writes what the log says about the actions of a run.
func (h *Handlers) auditTrail(ctx context.Context, in *auditTrailInput) (*huma.StreamResponse, error) {
	done, err := h.HeavyRead(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	trails, err := h.Executor.AuditTrail(ctx, endpoint.Principal(ctx).Account, in.StateKey)
	if err != nil {
		return nil, problems.Of(err)
	}
	if len(trails) == 0 {
		return nil, problems.New("not_found", "the audit log has no action of this run")
	}
	body, err := json.Marshal(trails)
	if err != nil {
		return nil, problems.Of(err)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "application/json")
		_, _ = hc.BodyWriter().Write(body) // a disconnected client needs no error
	}}, nil
}

// download writes a file.
func download(mediaType, name string, body []byte) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", mediaType)
		hc.SetHeader("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
		_, _ = hc.BodyWriter().Write(body) // a disconnected client needs no error
	}}
}

// verifyAudit verifies the log of the caller's account.
func (h *Handlers) verifyAudit(ctx context.Context, _ *struct{}) (*struct{ Body api.AuditVerification }, error) {
	done, err := h.HeavyRead(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	report, err := h.Executor.VerifyAudit(ctx, endpoint.Principal(ctx).Account)
	if err != nil {
		return nil, problems.Of(err)
	}
	out := api.AuditVerification{Records: report.To, Signed: report.Signed, Checkpoints: report.Checkpoints}
	if p := report.Problem; p != nil {
		out.Problem = &api.AuditProblem{Seq: p.Seq, Fault: string(p.Fault), Text: p.Text}
	}
	return &struct{ Body api.AuditVerification }{out}, nil
}

type proveAuditInput struct {
	Seq int64 `path:"seq" minimum:"1"`
}

// proveAudit writes the proof of a record as a file.
func (h *Handlers) proveAudit(ctx context.Context, in *proveAuditInput) (*huma.StreamResponse, error) {
	done, err := h.HeavyRead(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	proof, err := h.Executor.ProveAudit(ctx, endpoint.Principal(ctx).Account, in.Seq)
	switch {
	case errors.Is(err, audit.ErrNotSigned):
		return nil, problems.New("not_found", "no signed checkpoint covers the record")
	case errors.Is(err, audit.ErrNotFound):
		return nil, problems.New("not_found", "the audit log has no such record")
	case errors.Is(err, audit.ErrProof), errors.Is(err, audit.ErrUntrusted):
		return nil, problems.New("internal", "the stored records are not the signed ones: verify the log")
	case err != nil:
		return nil, problems.Of(err)
	}
	return download("application/json", fmt.Sprintf("fermata-proof-%d.json", in.Seq), proof), nil
}
