// Package auditlog has the pages of the audit log: records, decisions and evidence.
package auditlog

import (
	"encoding/json"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/web/page"
)

// Routes lists the pages of the audit log.
func Routes() page.Routes {
	return page.Routes{
		"GET /audit":                      showLog,
		"GET /audit/export":               export,
		"GET /audit/records/{seq}/proof":  proof,
		"GET /audit/decisions":            decisions,
		"GET /audit/requests/{id}":        showEvidence,
		"GET /audit/requests/{id}/bundle": downloadEvidence,
	}
}

// Funcs returns the template functions of the audit log.
func Funcs() template.FuncMap {
	return template.FuncMap{"auditkinds": audit.Kinds}
}

// auditData is the data of the page of the audit log.
type auditData struct {
	Records []api.AuditRecord
	// Search, Kind, Actor, Request and Day are the filters.
	Search, Kind, Actor, Request, Day string
	Filtered                          bool
	// Ignored are the names of parameters that the page does not know.
	Ignored []string
	// Scanned is how many records were read.
	Scanned int
	// Older, Newer and Newest are the addresses of other pages; "" if there is none.
	Older, Newer, Newest string
	// Checkpoint is the latest signed state of the log.
	Checkpoint *api.Checkpoint
	PublicKey  string
	// Findings are set if the person asked for a reconciliation, Verified for a verification.
	Findings *api.Findings
	Verified *api.AuditVerification
	// Busy is set if the server cannot search, reconcile or verify now.
	Busy *api.Problem
}

// auditPage is how many records a page has.
const auditPage = 100

// showLog lists the records of the log, newest first.
func showLog(v *page.Visit) (page.Response, error) {
	field := func(name string) string { return strings.TrimSpace(v.FormValue(name)) }
	data := auditData{Search: field("q"), Kind: field("kind"), Actor: field("actor"), Request: field("request"), Day: field("day")}
	query := client.AuditQuery{Limit: auditPage, Text: data.Search, Kind: data.Kind, Actor: data.Actor, Request: data.Request}
	if day, err := time.ParseInLocation(time.DateOnly, data.Day, v.Zone); err == nil {
		query.Since, query.Until = day, day.AddDate(0, 0, 1)
	} else {
		data.Day = "" // a wrong day is all days
	}
	data.Ignored = unknownParameters(v, "q", "kind", "actor", "request", "day", "before", "verify", "findings")
	data.Filtered = data.Search+data.Kind+data.Actor+data.Request+data.Day != ""
	if n, err := strconv.ParseInt(v.FormValue("before"), 10, 64); err == nil && n > 0 { // a wrong number is the end
		query.Before = n
	}
	list, err := v.API.AuditRecords(v.Context(), query)
	if data.Busy, err = orBusy(data.Busy, err); err != nil {
		return nil, err
	}
	data.Records, data.Scanned = list.Items, list.Scanned
	link := func(before int64) string {
		at := ""
		if before > 0 {
			at = strconv.FormatInt(before, 10)
		}
		return page.WithQuery("/audit", "q", data.Search, "kind", data.Kind, "actor", data.Actor, "request", data.Request, "day", data.Day, "before", at)
	}
	if list.Next > 0 {
		data.Older = link(list.Next)
	}
	if query.Before > 0 {
		data.Newest = link(0)
		if !data.Filtered {
			data.Newer = link(query.Before + auditPage)
		}
	}
	signed, err := latestCheckpoint(v)
	if err != nil {
		return nil, err
	}
	data.PublicKey = signed.PublicKey
	if n := len(signed.Items); n > 0 {
		data.Checkpoint = &signed.Items[n-1]
	}
	if v.FormValue("findings") != "" {
		found, err := v.API.Findings(v.Context())
		if data.Busy, err = orBusy(data.Busy, err); err != nil {
			return nil, err
		}
		if data.Busy == nil {
			data.Findings = &found
		}
	}
	if v.FormValue("verify") != "" {
		report, err := v.API.VerifyAudit(v.Context())
		if data.Busy, err = orBusy(data.Busy, err); err != nil {
			return nil, err
		}
		if data.Busy == nil {
			data.Verified = &report
		}
	}
	return page.Page{Name: "audit", Title: v.T("audit.title"), Data: data}, nil
}

// unknownParameters returns the names of the parameters in the address that a page does not know: a
// mistyped filter must not look like a filter that found everything.
func unknownParameters(v *page.Visit, known ...string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(v.URL.Query())), func(name string) bool { return slices.Contains(known, name) })
}

// latestCheckpoint returns the last page of the signed checkpoints, with the public key.
func latestCheckpoint(v *page.Visit) (signed api.Checkpoints, err error) {
	for after := int64(0); ; after = signed.Next {
		page, err := v.API.Checkpoints(v.Context(), after)
		if err != nil {
			return signed, err
		}
		if signed = page; signed.Next == 0 {
			return signed, nil
		}
	}
}

// orBusy separates the problem that the server reads too much now from other errors.
func orBusy(before *api.Problem, err error) (*api.Problem, error) {
	if problem, ok := errors.AsType[*api.Problem](err); ok && problem.Status == http.StatusServiceUnavailable {
		return problem, nil
	}
	return before, err
}

// proof downloads the proof of a record.
func proof(v *page.Visit) (page.Response, error) {
	seq, err := strconv.ParseInt(v.PathValue("seq"), 10, 64)
	if err != nil {
		return nil, page.ErrNotFound
	}
	proof, err := v.API.ProveAudit(v.Context(), seq)
	if err != nil {
		return nil, err
	}
	return page.Download{Name: "fermata-proof-" + strconv.FormatInt(seq, 10) + ".json", Type: "application/json", Body: proof}, nil
}

// export downloads the log as fermata audit export writes it: the records as stored, with the
// signed checkpoints in between.
func export(v *page.Visit) (page.Response, error) {
	notes := make(map[int64]string)
	for after := int64(0); ; {
		page, err := v.API.Checkpoints(v.Context(), after)
		if err != nil {
			return nil, err
		}
		for _, c := range page.Items {
			notes[c.Size] = c.Note
		}
		if after = page.Next; after == 0 {
			break
		}
	}
	first, err := v.API.AuditLines(v.Context(), 0)
	if err != nil {
		return nil, err
	}
	return logFile{first: first, notes: notes}, nil
}

// logFile is the download of a log.
type logFile struct {
	first []byte           // the first records
	notes map[int64]string // the checkpoints, by the number of their last record
}

func (f logFile) Write(v *page.Visit) error {
	page.SetDownloadHeaders(v.W.Header(), "fermata-audit.jsonl", "application/x-ndjson")
	v.W.WriteHeader(http.StatusOK)
	after := int64(0)
	for lines := f.first; len(lines) > 0; {
		for line := range strings.Lines(string(lines)) {
			after++ // the numbers of a log have no gaps
			if _, err := v.W.Write([]byte(line)); err != nil {
				return nil // the client has disconnected
			}
			if note, signed := f.notes[after]; signed {
				checkpoint, err := json.Marshal(struct {
					Checkpoint string `json:"checkpoint"`
					Account    string `json:"account"`
				}{note, v.Me.Account})
				if err != nil {
					panic(http.ErrAbortHandler)
				}
				_, _ = v.W.Write(append(checkpoint, '\n'))
			}
		}
		var err error
		if lines, err = v.API.AuditLines(v.Context(), after); err != nil {
			panic(http.ErrAbortHandler) // so that the browser does not keep a part of the log as the whole
		}
	}
	return nil
}
